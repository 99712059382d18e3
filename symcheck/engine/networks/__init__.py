"""Networks: following a group action through their layers, testing it on samples, and locating violations."""
