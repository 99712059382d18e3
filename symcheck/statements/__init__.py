"""Statements: what a run has to say, as a code with fields; and the one table of English sentences for the codes."""
