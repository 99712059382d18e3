import symcheck_properties  # noqa: F401  (registers the properties)
