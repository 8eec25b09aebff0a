"""All functions and constants of the language: importing this module enters their rows."""

from py2cu.builtins import (  # noqa: F401 - each enters its own
    annotations,
    atomics,
    bits,
    casts,
    floats,
    intrinsics,
    launch,
    marks,
    math,
    memory,
    methods,
    python,
    sync,
    warp,
)
from py2cu.builtins.registry import register

register(math.ROWS)
register(python.ROWS)
register(casts.ROWS)
register(intrinsics.ROWS)
register(launch.ROWS)
register(methods.ROWS)

CONSTANTS = {**math.CONSTANTS, **launch.CONSTANTS}
