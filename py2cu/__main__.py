"""`python -m py2cu`."""

from py2cu.cli import main

if __name__ == "__main__":
    main()
