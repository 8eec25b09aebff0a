"""No integer of the emitted CUDA overflows, at sizes on both sides of every limit: see `tests/widths`."""

from __future__ import annotations

from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, Final

import pytest

pytest.importorskip("torch")

from py2cu.check import small_values
from py2cu.ir.abi.signature import Signature
from py2cu.kernels import Kernel
from py2cu.passes.lowering.flatten_subscripts import _IndexArithmetic
from py2cu.pipeline import translate_file
from py2cu.simulator import SimulationError, simulate
from py2cu.source import SourceFile
from py2cu.translation import TargetName, Translation
from tests.support.compilers import gxx
from tests.support.libraries import Device, Setting, build
from tests.support.modules import import_file
from tests.support.samples import proofs
from tests.test_constants import TRANSLATED_AT_CALLS
from tests.test_kernel_cases import CHECKED, read_case, values_of
from tests.widths.narrow import bits_of, is_within_reach
from tests.widths.sizes import cases

EXAMPLES: Final = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))
FILES: Final = {path.stem: path for path in (*CHECKED, *EXAMPLES) if path.stem != TRANSLATED_AT_CALLS}
BATCHES: Final = [[*FILES][start::30] for start in range(30)]
HARMLESS_BITS: Final = 8
THREADS: Final = 150_000  # of a call that is not
SECONDS: Final = 2.0  # for a call that is simulated
# Kernels beyond reach: their threads meet by other means than `__syncthreads()`.
BEYOND: Final = {
    "lanes of a warp meet": frozenset((
        "arguments_by_name.named", "collective_bounds.counted", "constants_named.smooth", "dequantise.matvec",
        "guards_kept_in_locals.compacted", "masks.of_all_lanes", "masks.of_the_uppermost", "narrow_shifts.votes",
        "reductions.warp_sums", "shared_arrays.through_functions", "tuples_from_waiting_functions.by_shuffles",
        "warp_reductions.signed", "warp_reductions.unsigned", "warps.sums", "warps.types", "warps.votes",
    )),
    "threads wait for what others write, or fence it": frozenset((
        "agreed_in_shared_memory.last_block", "assert_of_blocks.in_order", "atomics_inside.locked",
        "backward_scratch.scaled_w", "shared_arrays.fences", "waiting.grid_wide", "waiting.locked",
        "waiting.passed_on", "waiting.scanned",
    )),
    "checked integers have no twin of CUDA's functions of bits": frozenset((
        "bit_counts.constants", "bit_counts.differences", "bit_counts.elements", "bit_counts.numbers",
        "bit_counts.ranks", "bit_counts.starts", "element_functions.bits", "naturals_joined.calls",
    )),
    "blocks of a grid meet": frozenset((
        "assert_of_blocks.doubled_by_the_grid", "assert_of_blocks.in_order_before_the_grid", "cooperative.relax",
        "cooperative.total", "grid_barriers.shifted", "grid_barriers.smooth", "grid_barriers.total",
    )),
}  # fmt: skip
# Kernels whose text compiles, and says nothing about widths or does not end.
UNJUDGED: Final = {
    "bits_of_elements.halves": "the bits of an element are a number that 12 bits do not hold",
    "breakpoint.halve": "it stops in a debugger",
    "naturals.kept_low": "numbers of 64 bits without a sign",
    "naturals.loaded": "numbers of 64 bits without a sign",
    "naturals_joined.paths": "a natural is greater than 12 bits hold",
    "overloads.alike_in_an_instance": "which overload a call means hangs on the types of its arguments",
    "powers_of_computed.counted": "a power whose range is known is greater than 12 bits hold",
    "ranges_of_integers.rounded_reach": "a constant of 32 bits",
    "shared_of_templates.reversed_rows": "a product of template arguments is greater than 12 bits hold",
    "truth_arguments.truths": "a power of a constant is greater than 12 bits hold",
    "tuples_iterated.cyclic": "a constant of 32 bits",
    "waiting.all_together": "each thread spins until all have written, and they run one after the other",
    "waiting.backwards": "each thread spins until the next one has written, and they run one after the other",
    "waiting.tried_often": "threads count their tries until another has written, and they run one after the other",
}


def source_of(path: Path) -> tuple[SourceFile, dict[str, Any]]:
    if path.suffix == ".py":
        return SourceFile.read(path), {}
    case = read_case(path)
    return SourceFile(path.with_suffix(".py").name, case.python), values_of(case)


def module_of(name: str, source: SourceFile, folder: Path) -> ModuleType:
    path = folder / f"{name}_kernels.py"
    path.write_text(source.text, encoding="utf-8")
    return import_file(path)


def translated(name: str, folder: Path) -> list[tuple[Translation, dict[str, FunctionType]]]:
    """The kernels of a file that can be judged: in one translation where all can, else in one each."""
    source, values = source_of(FILES[name])
    found = vars(module_of(name, source, folder)).values()
    own = [kernel for kernel in found if isinstance(kernel, Kernel)]
    kernels = {
        each._options.name or each.__name__: each.python for each in own if each.python.__module__ == f"{name}_kernels"
    }
    whole = with_small_values(source, values, None)
    is_listed = any(f"{name}.{each}" in names for each in kernels for names in (UNJUDGED, *BEYOND.values()))
    if is_judged(whole) and not is_listed:
        return [(whole, kernels)]
    parts = []
    for each, python in kernels.items():
        own = with_small_values(source, values, python.__name__)
        is_beyond = any(f"{name}.{each}" in names for names in BEYOND.values())
        assert is_judged(own) is not is_beyond, f"BEYOND is wrong about {name}.{each}"
        parts += [(own, {each: python})] if is_judged(own) and f"{name}.{each}" not in UNJUDGED else []
    return parts


def with_small_values(source: SourceFile, values: dict[str, Any], only: str | None) -> Translation:
    """The translation of a file, or of a kernel of it, with instances of templates that have none."""
    translation = translate_file(source, only, values=values)
    lacking = {key: value for each in translation.signatures for key, value in small_values(each).items()}
    return translate_file(source, only, values={**values, **lacking}) if lacking else translation


def is_judged(translation: Translation) -> bool:
    return TargetName.CPU in translation.texts and is_within_reach(translation)


@pytest.mark.builds
@pytest.mark.slow
@pytest.mark.parametrize(
    "names",
    proofs(BATCHES, 30),
    ids=lambda names: f"{names[0]}-{names[-1]}",
)
def test_no_integer_overflows(names, tmp_path):
    gxx()
    judged = [(name, *part) for name in names for part in translated(name, tmp_path)]
    libraries = build([translation for _, translation, _ in judged], Setting(Device.WIDTHS))
    reports = []
    for (name, translation, kernels), runs in zip(judged, libraries, strict=True):
        bits = bits_of(translation)
        for signature in translation.signatures:
            if signature.op not in runs or not is_harmless(kernels[signature.name], signature):
                continue
            for call in cases(signature, bits, THREADS):
                try:
                    runs[signature.op](call.arguments)
                except RuntimeError as error:
                    if "an assertion fails" not in str(error):
                        reports.append(f"{name}.{signature.name}, {call}: {error}")
    assert not reports, "\n".join(reports)


@pytest.mark.builds
@pytest.mark.parametrize("kernel", ["row_first", "cubes", "row_before"])
def test_a_stride_that_is_not_widened_is_found(kernel, monkeypatch, tmp_path):
    gxx()
    monkeypatch.setattr(_IndexArithmetic, "_widened", lambda self, expr, most: expr)
    source, values = source_of(FILES["wide_strides"])
    translation = translate_file(source, kernel, values=values)
    (signature,) = translation.signatures
    (runs,) = build([translation], Setting(Device.WIDTHS))
    largest = [*cases(signature, bits_of(translation), THREADS)][-1]
    with pytest.raises(RuntimeError, match=r"line \d+ of the CUDA text: (int|unsigned) of \d\d bits cannot hold \d"):
        runs[signature.op](largest.arguments)


def is_harmless(python: FunctionType, signature: Signature) -> bool:
    """True where no index leaves its array: the text is run without a comparison, which other tests make."""
    instance = signature.instances[0] if signature.instances else signature
    call = next(cases(signature, HARMLESS_BITS), None)
    if call is None:
        return False
    try:
        report = simulate(python, instance, dict(call.arguments), seconds=SECONDS)
    except (SimulationError, ValueError):
        return False
    return not any("negative index" in finding.message for finding in report.findings)
