"""Runs properties on a subject: method selection, evidence, verdicts, replay.

A run takes a claim and a subject (an environment or a network) and asks every registered property for its verdict.
Methods gather evidence and fill in `verdict.Facts`; `verdict.decide` decides; writers read `results`.
"""
