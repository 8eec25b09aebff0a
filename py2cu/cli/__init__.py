"""The command line, `py2cu`: `app` is the group of its commands, `main` runs it and ends the process."""

from py2cu.cli.app import app, main

__all__ = ["app", "main"]
