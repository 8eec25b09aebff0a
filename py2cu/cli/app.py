"""The command `py2cu`: the group of its commands, and the console script.

Exit codes: 0 fine, 1 a check failed, 2 the input was refused or the usage is wrong, 3 the environment lacks something,
70 a bug in py2cu. Promises: results go to stdout, diagnostics and progress to stderr; a user's mistake causes no
traceback. Each command imports heavy modules inside its function.
"""

from __future__ import annotations

import gc
import sys
from typing import NoReturn

import click

from py2cu import __version__
from py2cu.cli.cache import cache
from py2cu.cli.info import doctor, explain
from py2cu.cli.parameters import examples
from py2cu.cli.run import build, check
from py2cu.cli.translate import translate


@click.group(
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=examples(
        "py2cu translate rgb2grey.py -o csrc   the .cu, .h and .cpp",
        "py2cu check rgb2grey.py               against its own Python, over many shapes and values",
        "py2cu explain P301                    what a diagnostic means",
        after="Exit codes: 0 fine, 1 a check failed, 2 the input was refused, 3 the environment lacks something.",
    ),
)
@click.version_option(__version__, message="py2cu %(version)s")
def app() -> None:
    """Write a kernel in Python, get readable CUDA C++, and evidence that the two agree."""


for command in (translate, check, build, cache, explain, doctor):
    app.add_command(command)


def main() -> NoReturn:
    """The console script."""
    gc.set_threshold(100_000)  # a short run has little garbage: collecting it took a tenth of the time
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a comment in Greek must not fail in a terminal that has no Greek
            stream.reconfigure(errors="backslashreplace")
    app(prog_name="py2cu")
    raise SystemExit  # not reached: the app exits by itself
