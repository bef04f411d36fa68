"""`python -m trellis.compiled build`: compile what ships with Trellis, unless that has been done."""

from trellis.compiled.build import main

if __name__ == "__main__":
    main()
