"""`python -m trellis`: the command line."""

from trellis.cli.main import main

if __name__ == "__main__":
    main()
