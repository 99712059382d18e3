"""`python -m symcheck`: the command line, for use when the script is not on the path."""

from symcheck.cli import entry

if __name__ == "__main__":
    entry()
