"""The command line, `py2cu`."""

from py2cu.cli.app import main

__all__ = ["main"]
