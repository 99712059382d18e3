"""`python -m reference_agents`: the command line, if the script is not on the path."""

from reference_agents.cli import main

if __name__ == "__main__":
    main()
