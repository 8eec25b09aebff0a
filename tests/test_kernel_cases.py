"""Kernels as data: what Python becomes what CUDA, and both compute the same.

Each file in `tests/cases/kernels` is a sentence, then sections: `=== python` (imports that `PRELUDE` has are left out),
`=== cuda` (the functions for the device, without the launchers), `=== notes` where the translator says something, and
`=== unchecked` with the reason where the kernels cannot be run against their Python. `pytest --update-golden` rewrites
what the translator says; the diff is the review. `=== constexpr` has the values of template arguments: `tile=1,16`.
"""

from __future__ import annotations

import dataclasses
import functools
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from py2cu.build import codec, toolchain
from py2cu.ir.abi.signature import Signature
from py2cu.ir.printer import print_expr
from py2cu.kernels import Kernel
from py2cu.pipeline import lower_file, translate_file
from py2cu.source import SourceFile
from py2cu.targets.lowered import Lowered
from py2cu.testing import assert_matches_python
from py2cu.translation import TargetName, Translation
from tests.support.compilers import GXX_STRICT, NVCC_STRICT, gxx, nvcc, torch_headers
from tests.support.modules import import_file
from tests.support.samples import proofs, sampled

CASES = sorted((Path(__file__).parent / "cases" / "kernels").glob("*.case"))
# Those whose kernels can be run against their Python, as many at a time as one library holds.
CHECKED = [path for path in CASES if "=== unchecked" not in path.read_text(encoding="utf-8")]
BATCHES = [CHECKED[start :: -(-len(CHECKED) // 24)] for start in range(-(-len(CHECKED) // 24))]
SAMPLE = CHECKED[::30]  # of CI; the batches are proofs
VECTORIZED = [path for path in CHECKED if path.stem == "searches"]  # which compilers have got wrong
# One for each kind of thing that a binding does: dtypes, template arguments, fills, rows, shared memory, grids, …
THROUGH_BINDING = (
    "complex", "constexpr", "dtypes", "generic", "grid_barriers", "inits", "optional_arrays", "roles", "scalars",
    "shared_dynamic", "views_in_rows",
)  # fmt: skip
PRELUDE = (
    "import math; import numpy as np; import torch; from torch import Tensor; "
    "from jaxtyping import BFloat16, Bool, Float16, Float32, Float64, Int8, Int16, Int32, Int64; "
    "from jaxtyping import Complex, Complex64, Complex128, Float, Int, Num, UInt8, UInt16, UInt32, UInt64; "
    "from py2cu import Constexpr, Index, kernel\n"
)


@dataclasses.dataclass(frozen=True)
class Case:
    """One file: its sentence and its sections, in order."""

    path: Path
    sentence: str
    sections: dict[str, str]

    @property
    def python(self) -> str:
        return PRELUDE + self.sections["python"]


def read_case(path: Path) -> Case:
    sentence, *parts = re.split(r"^=== (.+)\n", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return Case(path, sentence.strip(), {name: text.strip("\n") + "\n" for name, text in zip(*[iter(parts)] * 2)})  # noqa: B905


def values_of(case: Case) -> dict[str, tuple[int, ...]]:
    lines = case.sections.get("constexpr", "").split()
    return {name: tuple(map(int, numbers.split(","))) for name, _, numbers in (line.partition("=") for line in lines)}


def write_case(case: Case) -> None:
    parts = [case.sentence + "\n", *(f"=== {name}\n{text}" for name, text in case.sections.items())]
    case.path.write_text("\n".join(parts), encoding="utf-8")


def device_functions(case: Case) -> str:
    """The functions for the device, which calls compile: the emitted `.cu` without its includes and launchers."""
    lowered = translate_once(case.path.stem, case.python, tuple(values_of(case).items()))[1]
    return lowered.for_calls(TargetName.CUDA).text(TargetName.CUDA).text.text.strip("\n") + "\n"


def said(translation: Translation) -> str:
    """The translator's notes, with lines counted as the case's Python counts them."""
    return "".join(
        f"{note.span.line - 1}: {note.severity.name.lower()}[{note.code}]: {note.message}\n"
        for note in translation.notes
    )


def translate(case: Case, **values: tuple[int, ...]) -> Translation:
    """Its translation, which many tests of a process share."""
    return translate_once(case.path.stem, case.python, tuple({**values_of(case), **values}.items()))[0]


@functools.cache
def translate_once(
    stem: str, python: str, values: tuple[tuple[str, tuple[int, ...]], ...]
) -> tuple[Translation, Lowered]:
    lowered = lower_file(SourceFile(f"{stem}.py", python), values=dict(values))
    return lowered.files(), lowered


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_translation_is_as_kept(path, request):
    case = read_case(path)
    translation = translate(case)
    emitted = {"cuda": device_functions(case), "notes": said(translation)}
    if request.config.getoption("--update-golden") or "cuda" not in case.sections:
        rest = {name: text for name, text in case.sections.items() if name not in ("cuda", "notes")}
        write_case(dataclasses.replace(case, sections={**rest, **{k: v for k, v in emitted.items() if v}}))
        return
    assert emitted == {"cuda": case.sections["cuda"], "notes": case.sections.get("notes", "")}
    lowered = translate_once(case.path.stem, case.python, tuple(values_of(case).items()))[1]
    for made in (translation, lowered.for_calls(*TargetName)):
        cached = codec.decode(codec.encode(made), type(made))
        # NaN is an initial value: it equals nothing.
        assert repr(cached) == repr(made) and codec.encode(cached) == codec.encode(made)


@pytest.mark.parametrize("path", sampled(CASES, 16), ids=lambda path: path.stem)
def test_two_translations_of_one_text_are_equal(path):
    case = read_case(path)
    again = translate_file(SourceFile(f"{case.path.stem}.py", case.python), values=values_of(case))
    assert again == translate(case)


def test_of_two_limits_it_is_always_the_same_that_gives_the_size():
    case = read_case(CASES[0].with_name("generic.case"))
    (signature,) = (signature for signature in translate(case).signatures if signature.name == "copied")
    assert signature.size is not None
    assert [*map(print_expr, signature.size)] == ["x_size"]


@pytest.mark.builds
@pytest.mark.parametrize(
    "paths",
    [pytest.param(SAMPLE, id="sample"), *proofs(BATCHES)],
    ids=lambda paths: f"{paths[0].stem}-{paths[-1].stem}",
)
def test_compiled_kernels_match_python(paths, tmp_path):
    """One library for all of them, without torch's binding."""
    pytest.importorskip("torch")
    from tests.support.batches import disagreements
    from tests.support.libraries import Device

    assert not disagreements(paths, Device.CPU, tmp_path)


@pytest.mark.builds
@pytest.mark.parametrize(
    "paths",
    [VECTORIZED, *proofs(BATCHES)],
    ids=lambda paths: f"{paths[0].stem}-{paths[-1].stem}",
)
def test_kernels_compiled_for_a_call_match_python(paths, tmp_path):
    """With the flags of a call, which let the compiler vectorize."""
    pytest.importorskip("torch")
    from tests.support.batches import disagreements
    from tests.support.libraries import Device

    assert not disagreements(paths, Device.OPTIMISED, tmp_path)


@pytest.mark.builds
@pytest.mark.parametrize(
    "stem",
    proofs(THROUGH_BINDING, 2),
)
def test_kernels_behind_their_binding_match_python(stem, tmp_path):
    pytest.importorskip("torch")
    case = read_case(CASES[0].with_name(f"{stem}.case"))
    translation = translate(case)
    kernels = import_kernels(case, tmp_path)
    assert len(kernels) == len(translation.signatures)
    for kernel in kernels:
        signature = signature_of(kernel, translation)
        # One build for all of them.
        assert_matches_python(kernel.with_translation(dataclasses.replace(translation, signatures=(signature,))))


def signature_of(kernel: Kernel, translation: Translation) -> Signature:
    name = kernel._options.name or kernel.__name__
    return next(signature for signature in translation.signatures if signature.name == name)


def import_kernels(case: Case, place: Path) -> list[Kernel]:
    file = place / f"{case.path.stem}.py"
    file.write_text(case.python, encoding="utf-8")
    module = import_file(file)
    return [value for value in vars(module).values() if isinstance(value, Kernel)]


@pytest.mark.builds
@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "cases"),
    [
        pytest.param("cuda", CASES[::16], id="cuda-0"),
        *(pytest.param("cuda", CASES[n::16], id=f"cuda-{n}", marks=pytest.mark.proof) for n in range(1, 16)),
        pytest.param("cpu", CASES, id="cpu", marks=pytest.mark.proof),
    ],
)
def test_all_cases_compile_without_warnings(target, cases, tmp_path):
    """They stand in one file, a namespace each."""
    command = {
        "cuda": lambda: [nvcc(), *NVCC_STRICT, "-O1", "-Xptxas=-O0", "-arch=sm_75"],
        # Compiled alone, what is local to a text is in the main file; here `#line` says that it is in another one.
        "cpu": lambda: [gxx(), *GXX_STRICT, "-Wno-subobject-linkage", *torch_headers(), "-O1", "-x", "c++"],
    }[target]()
    source = tmp_path / "cases.cu"
    source.write_text(in_one_file(cases, TargetName(target), "header", "kernel"), encoding="utf-8")
    command += ["-c", str(source), "-o", str(tmp_path / "cases.o")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.builds
@pytest.mark.proof
@pytest.mark.parametrize("target", TargetName)
def test_all_bindings_compile(target, tmp_path):
    """Torch's binding of every case, of which `THROUGH_BINDING` are built; in one file, a namespace each."""
    headers = [*torch_headers(), "-DTORCH_EXTENSION_NAME=cases"]
    if target is TargetName.CUDA:
        nvcc()
        include = toolchain.cuda_include(toolchain.cuda_home())
        headers += ["-DUSE_CUDA", "-isystem", str(include), "-isystem", str(include / "cccl")]
    source = tmp_path / "bindings.cpp"
    source.write_text(in_one_file(CASES, target, "header", "binding"), encoding="utf-8")
    flags = [*GXX_STRICT, "-Wno-unused-but-set-variable", "-fsyntax-only"]
    done = subprocess.run([gxx(), *flags, *headers, str(source)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def in_one_file(cases: Sequence[Path], target: TargetName, *parts: str) -> str:
    """The parts of all cases as one text: the includes first, then each case in a namespace of its own."""
    includes: dict[str, None] = {}
    bodies: list[str] = []
    for path in cases:
        translation = translate(read_case(path))
        if target not in translation.texts:  # threads that work together
            continue
        artifacts = translation.texts[target]
        bodies.append(f"namespace case_{path.stem} {{")
        for text in (getattr(artifacts, part) for part in parts):
            bodies.append(f'#line 1 "{text.name}"')
            for line in text.text.splitlines():
                includes |= {line: None} if line.startswith("#include <") else {}
                bodies.append("" if line.startswith(("#include", "#pragma once")) else line)
        bodies.append("}")
    return "\n".join([*sorted(includes), *bodies, ""])
