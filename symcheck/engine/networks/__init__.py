"""Networks: how a group action is followed through their layers, tested on samples, and located where it breaks."""
