"""Which symmetries does this environment have? A search that proposes, and the verification that decides.

The search narrows in stages, each cheaper than the next is exact: the effect of every coordinate and action at a point
that symmetries keep (`structure`), the maps that leave this structure alone (`automorphisms`), single transitions of
the environment (`screening`), and at last `verify-env` itself on fresh samples (`deciding`). Only what the last stage
accepts is ever claimed.
"""
