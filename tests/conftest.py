"""Loads py2cu's own pytest plugin from the checkout; where the package is installed, pytest found it already."""

from importlib.metadata import entry_points

pytest_plugins = [] if entry_points(group="pytest11", name="py2cu") else ["py2cu.testing"]
