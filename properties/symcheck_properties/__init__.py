"""Properties as first-class objects: what symcheck checks, one file each."""
