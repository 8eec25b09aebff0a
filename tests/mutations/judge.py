"""Whether cases hold in the tree that is imported: `python -m tests.mutations.judge cpu:division refused:print`.

Prints the first that does not and why, and exits with 1. Kernels are built without torch's binding, which takes a
second instead of ten.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from py2cu.diagnostics import InternalError, TranslationError, render
from tests.mutations.rows import FOLDERS
from tests.test_error_cases import reported, sections
from tests.test_kernel_cases import device_functions, import_kernels, read_case

ROOT = Path(__file__).parents[1] / "cases"


def find_fault(case: str) -> str | None:
    """What is wrong with a case; None where it holds."""
    how, _, name = case.partition(":")
    name, _, kernel = name.partition(".")
    try:
        return _fault(how, ROOT / FOLDERS[how] / f"{name}.case", kernel)
    except TranslationError as refused:
        return f"is refused: {refused.diagnostics[0].code}"
    except InternalError as broken:
        return f"breaks the compiler: {broken}"


def _fault(how: str, path: Path, kernel: str) -> str | None:
    match how:
        case "refused":
            error_case = sections(path)
            said = render(reported(path, error_case.python))
            return None if said == error_case.error else "says something else"
        case "kept":
            kept = read_case(path)
            emitted = device_functions(kept)
            return None if emitted == kept.sections["cuda"] else "is another text"
        case "sanitized":
            return compare(path, kernel, "cpu", sanitize=True)
        case _:
            return compare(path, kernel, how)


def compare(path: Path, only: str, where: str, sanitize: bool = False) -> str | None:
    """What a kernel of a case, or each of them, computes otherwise than its Python."""
    from py2cu.check import check_kernel
    from py2cu.pipeline import translate_file
    from py2cu.source import SourceFile
    from tests.support.libraries import STOPS, Checked, CompileFailure, Device, Setting, build

    case, device = read_case(path), Device(where)
    file = SourceFile(path.name, case.python)
    with tempfile.TemporaryDirectory() as folder:
        kernels = [kernel for kernel in import_kernels(case, Path(folder)) if only in ("", kernel.__name__)]
        try:
            translations = [translate_file(file, kernel.__name__, device.targets) for kernel in kernels]
            runs = build(translations, Setting(device, STOPS if sanitize else ()))
        except CompileFailure:
            return "does not compile"
        for kernel, translation, (run,) in zip(kernels, translations, map(dict.values, runs), strict=True):
            report = check_kernel(Checked(kernel.python, translation.signatures[0], run), device="cpu")
            if not (report.ok and report.has_run):
                return f"{kernel.__name__}: {report.failures[0].kind if report.failures else 'is not checked'}"
    return None


if __name__ == "__main__":
    for each in sys.argv[1:]:
        print(each, flush=True)
        if fault := find_fault(each):
            print(fault)
            sys.exit(1)
