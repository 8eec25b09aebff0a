"""How many kernels of Numba's own tests translate, and why the others do not.

    python -m tests.from_numba.numba_tests [FILE]

Runs `numba.cuda.tests` under Numba's simulator, from a copy outside of Numba, and translates each kernel that a test
launches, with the types of the call as its signature. Prints a table, and writes it to FILE. Left out are kernels
without source, and those that take or make what py2cu refuses by name: records, dates and strings.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import shutil
import sys
import tempfile
import unittest
import warnings
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

os.environ["NUMBA_ENABLE_CUDASIM"] = "1"

import numba
import numpy as np
from numba.cuda import tests
from numba.cuda.simulator import kernel as simulator

from py2cu.diagnostics import TranslationError
from py2cu.kernels import Kernel
from py2cu.options import KernelOptions

PACKAGE: Final = "tests_of_numba"
FOLDERS: Final = ("cudapy", "cudasim", "nocuda", "doc_examples", "cudadrv")
LEFT_OUT: Final = re.compile(r"record|'names'|\[\('|datetime|<U|\|S|_RECORD")  # in types, and names of constants
REASONS: Final = {
    "a `raise`": r"^P103 `raise`",
    "vector types": r"vobj|v1|float64x4|base_type",
    "enums that are no integers": r"Color|RequestError",
    "tuples of tuples, of arrays and without items": r"Tuple\(|::1\]` is no type|no signature",
    "named tuples": r"`x\.x`",
    "slices with a step": r"one slice of neighbouring",
    "powers of complex numbers": r"constant powers",
    "parts of complex arrays": r"first argument is an array",
    "kernels without effect": r"^P407|no effect",
    "functions of Numba's own modules": r"numba\.\w+_usecase|numba\.fib",
    "deprecated or host functions": r"compare_and_swap|this_grid",
    "arrays of constants that are empty or complex": r"numbers of this array",
}


@dataclass
class Recorder:
    """The kernels that tests launch, each with the error of its translation, if any, and whether it is left out."""

    seen: dict[tuple[str, int, str], tuple[str, bool]] = field(default_factory=dict)

    def record(self, function: Any, args: tuple[Any, ...]) -> None:
        place = (function.__code__.co_filename, function.__code__.co_firstlineno, function.__name__)
        if place in self.seen:
            return
        signature = f"void({', '.join(map(spelled, args))})"
        try:
            _ = Kernel(function, KernelOptions(signature=signature)).translation
            outcome = ""
        except TranslationError as error:
            first = next(each for each in error.diagnostics if each.severity.name == "ERROR")
            outcome = f"{first.code} {first.message}"
        except Exception as error:
            outcome = f"crash {error!r}"
        is_left_out = outcome.startswith("P100") or bool(LEFT_OUT.search(f"{signature} {function.__code__.co_names}"))
        self.seen[place] = outcome, is_left_out


def spelled(value: Any) -> str:
    """The type of an argument, as in a signature."""
    if isinstance(value, bool | np.bool_):
        return "boolean"
    for python, name in ((int, "int64"), (float, "float64"), (complex, "complex128")):
        if isinstance(value, python):
            return name
    if isinstance(value, tuple):
        return f"Tuple(({', '.join(map(spelled, value))},))"
    array = getattr(value, "_ary", value)
    if not hasattr(array, "dtype"):
        return repr(type(value))
    if array.ndim == 0:
        return f'Array({array.dtype}, 0, "C")' if isinstance(array, np.ndarray) else str(array.dtype)
    last = "::1" if array.flags.c_contiguous else ":"
    return f"{array.dtype}[{', '.join([':'] * (array.ndim - 1) + [last])}]"


def run_tests(folder: Path) -> Recorder:
    """Run Numba's tests from a copy in `folder`."""
    shutil.copytree(Path(tests.__file__).parent, folder / PACKAGE)
    for file in folder.rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        file.write_text(text.replace("numba.cuda.tests", PACKAGE), encoding="utf-8")
    sys.path.insert(0, str(folder))
    recorder, launch = Recorder(), simulator.FakeCUDAKernel.__call__

    def call(self: Any, *args: Any) -> Any:
        if not self._device:
            recorder.record(self.fn, args)
        return launch(self, *args)

    simulator.FakeCUDAKernel.__call__ = call
    suite, loader = unittest.TestSuite(), unittest.defaultTestLoader
    for name in FOLDERS:
        suite.addTests(loader.discover(str(folder / PACKAGE / name), "test_*.py", top_level_dir=str(folder)))
    unittest.TextTestRunner(stream=io.StringIO(), verbosity=0).run(suite)
    return recorder


def page(recorder: Recorder) -> str:
    """The table of what translates, and of the reasons."""
    counted = [outcome for outcome, is_left_out in recorder.seen.values() if not is_left_out]
    done, reasons = counted.count(""), Counter[str]()
    for outcome in filter(None, counted):
        reasons[next((name for name, text in REASONS.items() if re.search(text, outcome)), outcome)] += 1
    rows = "\n".join(f"| {reason.replace('|', chr(92) + '|')} | {count} |" for reason, count in reasons.most_common())
    return (
        f"# Kernels of Numba's own tests\n\nNumba {numba.__version__}, `python -m tests.from_numba.numba_tests`: of "
        f"{len(recorder.seen)} kernels that its tests launch under its simulator, {len(recorder.seen) - len(counted)} "
        f"have no source, or take records, dates or strings. Of the other {len(counted)}, **{done} translate "
        f"({done / len(counted):.1%})**.\n\n| the others | kernels |\n|---|---|\n{rows}\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?", type=Path, help="where the table is written, too")
    file: Path | None = parser.parse_args().file
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        text = page(run_tests(Path(folder)))
    print(text)
    if file is not None:
        file.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
