"""Search for the symmetries of an environment: the search proposes candidates, and verification decides.

The search narrows the candidates in stages of increasing cost: the effect of every coordinate and action at a fixed
point of the symmetries (`structure`), the maps that preserve this structure (`automorphisms`), single transitions of
the environment (`screening`), and finally `verify-env` itself on fresh samples (`deciding`). Only the last stage leads
to a claim.
"""
