"""`python -m medi` is the same program as `medi`."""

from medi.cli import main

if __name__ == "__main__":
    main()
