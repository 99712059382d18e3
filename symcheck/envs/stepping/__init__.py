"""One environment, put into states and stepped: the only modules that touch what users wrote."""
