"""The command line: one module a command, all heavy imports inside the commands."""
