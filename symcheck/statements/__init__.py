"""Statements: a code with fields, and the tables of English sentences for the codes."""
