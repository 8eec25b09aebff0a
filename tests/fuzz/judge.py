"""The verdict on kernels: translated, some of them twice, compiled together, each compared with its Python.

In: sources of kernels. Out: a `Verdict` each, in order.
"""

from __future__ import annotations

import contextlib
import enum
import inspect
import linecache
import re
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

import tests.support.emulator
import tests.widths.narrow
import tests.widths.sizes
from py2cu.check import Case, check_kernel, make_case
from py2cu.check.cases import choose_left_out
from py2cu.check.draw import TAME
from py2cu.check.redzones import CONTIGUOUS, EXPANDED, SLICED, TRANSPOSED
from py2cu.check.sizes import choose_constexprs
from py2cu.diagnostics import NarrowIntegerWarning, Severity, TranslationError
from py2cu.ir.abi.signature import Signature
from py2cu.kernels import Kernel
from py2cu.passes.manager import observing
from py2cu.passes.verified import verify_step
from py2cu.pipeline import translate_file
from py2cu.source import SourceFile
from py2cu.translation import Translation
from tests.fuzz.kernels import NAME, PRELUDE, VALUES
from tests.fuzz.redefinitions import CELL
from tests.support.libraries import Checked, CompileFailure, Device, Run, Setting, build

_BROKEN: Final = re.compile(r"\b(Attribute|Key|Name|NotImplemented|Runtime|Type)Error: ")  # none that kernels raise

_UNJUDGED: Final = "elements alone reach"
_TRAP: Final = re.compile(r"line (\d+) of the CUDA text")
_OF_ELEMENTS: Final = re.compile(r"% static_cast<u?int(?:8|16)_t>")  # an index whose range C knows, and not the bits
_NOT_HELD: Final = re.compile(r"bits cannot hold (\S+)")
_BEYOND: Final = 2 ** (max(tests.widths.narrow.BITS) - 1)
TWICE: Final = 4  # every fourth kernel is translated twice
# Which texts the devices run that are none.
_REACHES: Final[Mapping[Device, Callable[[Translation], bool]]] = {
    Device.EMULATED: tests.support.emulator.is_within_reach,
    Device.WIDTHS: tests.widths.narrow.is_within_reach,
}
_CRASH: Final = re.compile(r"\ASegmentation fault\s*\Z|died due to signal")


class Outcome(enum.StrEnum):
    """What came of a kernel."""

    AGREES = "agrees"
    REFUSED = "refused"  # with a diagnostic
    UNCHECKED = "not checked"  # its Python raised on every input
    DIFFERS = "differs"
    STUMBLES = "the simulator broke"
    CHANGES = "two translations differ"
    BREAKS = "the translator broke"
    UNCOMPILED = "does not compile"
    OVERWHELMS = "crashes the compiler"  # whose fault that is
    CRASHED = "crashed"
    HANGS = "hangs"


@dataclass(frozen=True, slots=True)
class Verdict:
    """An outcome, in words: the codes of a refusal, the first bad element."""

    outcome: Outcome
    message: str = ""
    cases: int = 0
    skipped: int = 0
    elements: int = 0

    @property
    def is_fault(self) -> bool:
        return self.outcome not in (Outcome.AGREES, Outcome.REFUSED, Outcome.UNCHECKED, Outcome.OVERWHELMS)


@dataclass(slots=True)
class Seconds:
    """Where the time went."""

    spent: dict[str, float] = field(default_factory=dict)

    def measure(self, what: str, work: Callable[[], Any]) -> Any:
        start = time.perf_counter()
        try:
            return work()
        finally:
            self.spent[what] = self.spent.get(what, 0.0) + time.perf_counter() - start


def judge(sources: Sequence[str], setting: Setting, seconds: Seconds) -> list[Verdict]:
    """A verdict on each source. A kernel that ends the process ends this one."""
    device = setting.device
    verdicts: dict[int, Verdict] = {}
    translations: dict[int, Translation] = {}
    for number, source in enumerate(sources):
        found = seconds.measure("translate", partial(translate, source, device, twice=number % TWICE == 0))
        if isinstance(found, Verdict):
            verdicts[number] = found
        else:
            translations[number] = found
    runs = seconds.measure("compile", lambda: dict(_compile(translations, setting)))
    for number, run in runs.items():
        if isinstance(run, Verdict):
            verdicts[number] = run
        else:
            checked = _checked(sources[number], translations[number], run)
            inputs = cases(checked.signature)
            if device is Device.WIDTHS:
                inputs = tests.widths.sizes.cases(checked.signature, tests.widths.narrow.bits_of(translations[number]))
            verdict = seconds.measure("check", partial(compare, checked, inputs, setting))
            if device is Device.WIDTHS:
                verdict = _out_of_reach(verdict, translations[number]) or verdict
            verdicts[number] = verdict
    return [verdicts[number] for number in range(len(sources))]


def _out_of_reach(verdict: Verdict, translation: Translation) -> Verdict | None:
    """The verdict where checked integers cannot hold a constant such as 65535, a power such as `255 ** 2`, or what C
    computes of elements alone.
    """
    trap = _TRAP.search(verdict.message)
    is_of_elements = trap is not None and _OF_ELEMENTS.search(
        translation.cuda.kernel.text.splitlines()[int(trap[1]) - 1]
    )
    if _UNJUDGED in verdict.message or is_of_elements:
        return Verdict(Outcome.REFUSED, "widths: arithmetic of elements beyond the bits")
    held = _NOT_HELD.search(verdict.message)
    if held is None or abs(float(held[1])) < _BEYOND:
        return None
    has_constant = max(tests.widths.narrow.constants_of(translation), default=0) >= _BEYOND
    if not has_constant and "int_pow(" not in translation.cuda.kernel.text:
        return None
    return Verdict(Outcome.REFUSED, "widths: a constant or a power of more than 16 bits")


def translate(source: str, device: Device, *, twice: bool = True) -> Translation | Verdict:
    """The translation, verified after every pass, or the verdict where there is none; `twice`: and a second one."""
    try:
        with observing(verify_step):
            first = _translation(source, device)
        second = _translation(source, device) if twice else first
    except TranslationError as error:
        errors = [item for item in error.diagnostics if item.severity is Severity.ERROR]
        codes = sorted({item.code for item in errors})
        return Verdict(Outcome.REFUSED, f"{' '.join(codes)}: {errors[0].message}")
    except Exception:
        return Verdict(Outcome.BREAKS, traceback.format_exc())
    is_within_reach = _REACHES.get(device)
    if is_within_reach is not None and not is_within_reach(first):
        return Verdict(Outcome.REFUSED, f"{device}: threads meet")
    return first if first == second else Verdict(Outcome.CHANGES)


def _translation(source: str, device: Device) -> Translation:
    if CELL in source:
        return _translation_of_cells(source)
    return translate_file(SourceFile(f"{NAME}.py", PRELUDE + source), targets=device.targets, values=VALUES)


def _translation_of_cells(source: str) -> Translation:
    """Of a kernel that has been translated before the later cell, too."""
    first, later = source.split(CELL)
    home = run_cells(first)
    kernel = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NarrowIntegerWarning)  # random kernels mean to wrap
        with contextlib.suppress(TranslationError):  # the later cell may mend it
            kernel = instantiated(home)
            _ = kernel.translation
        run_cell(1, later, home)
        return (kernel or instantiated(home)).translation


def instantiated(home: Mapping[str, Any]) -> Kernel:
    """The kernel, with instances for the values of its template arguments."""
    kernel = home[NAME]
    assert isinstance(kernel, Kernel)
    known = inspect.signature(kernel.python).parameters
    return kernel.with_values(**{name: values for name, values in VALUES.items() if name in known})


def run_cells(source: str) -> dict[str, Any]:
    """The names that the cells of `source` define, run one after the other."""
    home: dict[str, Any] = {"__name__": NAME}
    for number, text in enumerate(source.split(CELL)):
        run_cell(number, text if number else PRELUDE + text, home)
    return home


def run_cell(number: int, text: str, home: dict[str, Any]) -> None:
    """As a notebook does, which keeps the text of each cell under a name."""
    name = f"<cell {number}>"
    linecache.cache[name] = len(text), None, text.splitlines(keepends=True), name
    exec(compile(text, name, "exec"), home)


def _compile(translations: Mapping[int, Translation], setting: Setting) -> Iterator[tuple[int, Run | Verdict]]:
    """What runs each kernel. Where not all compile, those that the compiler names are left out, or halves are tried."""
    if not translations:
        return
    numbers = [*translations]
    try:
        runs = build([*translations.values()], setting)
    except CompileFailure as failure:
        named = failure.errors if failure.errors or len(numbers) > 1 else {0: str(failure)}
        for place, error in named.items():
            outcome = Outcome.OVERWHELMS if _CRASH.search(error) else Outcome.UNCOMPILED
            yield numbers[place], Verdict(outcome, error)
        rest = [number for place, number in enumerate(numbers) if place not in named]
        half = len(rest) if named else len(rest) // 2
        for part in (rest[:half], rest[half:]):
            yield from _compile({number: translations[number] for number in part}, setting)
    else:
        for number, (run,) in zip(numbers, map(dict.values, runs), strict=True):
            yield number, run


def _checked(source: str, translation: Translation, run: Run) -> Checked:
    """The compiled kernel and its Python, which CPython compiles from the same source."""
    kernel = run_cells(source)[NAME]
    assert isinstance(kernel, Kernel)
    return Checked(kernel.python, translation.signatures[0], run)


def compare(checked: Checked, inputs: Iterable[Case], setting: Setting) -> Verdict:
    report = check_kernel(checked, inputs, device=setting.device.memory, contracts=setting.fma)
    outcome = Outcome.DIFFERS if report.failures else Outcome.AGREES if report.has_run else Outcome.UNCHECKED
    message = "" if outcome is Outcome.AGREES else str(report)
    broken = next(filter(_BROKEN.search, report.skipped), None)
    if broken is not None:
        outcome, message = Outcome.STUMBLES, broken
    return Verdict(outcome, message, report.cases, len(report.skipped), report.compared)


# --- inputs -------------------------------------------------------------------------------------------------------

# Extents, and the values that meet them: few threads, since CPython runs each, but over the edge of a block.
PLAN: Final = (
    ({"n": 5, "m": 3, "p": 2, "h": 2, "q": 3}, "random"),
    ({"n": 6, "m": 2, "p": 3, "h": 1, "q": 1}, "extreme"),
    ({"n": 7, "m": 3, "p": 2, "h": 2, "q": 2}, "non-finite"),
    ({"n": 3, "m": 1, "p": 1, "h": 1, "q": 4}, TAME),
)  # fmt: skip
WIDE: Final = (2**31, -(2**40), 5, -(2**31) - 1, 2**40, -1, 0)
LAYOUTS: Final = (TRANSPOSED, SLICED, EXPANDED, CONTIGUOUS)
FLOATS: Final = (0.5, -1.25, 0.1, 3e7, -0.0, 1e-3)


def cases(signature: Signature) -> Iterator[Case]:
    """The inputs of a kernel, the same each time; of a generic one, for every dtype."""
    for instance in signature.instances or (signature,):
        yield from _cases(instance)


def _cases(signature: Signature) -> Iterator[Case]:
    dims = [dim.name for dim in signature.dims]
    names = {*dims} | {name for name in PLAN[0][0] if _reads(signature, name)}
    for seed, (sizes, values) in enumerate(PLAN):
        chosen_sizes = {name: sizes[name] for name in sizes if name in names}
        chosen_sizes |= {name: sizes["n"] for name in dims if name not in sizes}  # of `...`
        chosen_sizes |= choose_constexprs(signature, seed)
        left_out = choose_left_out(signature, seed)
        layout = LAYOUTS[seed % len(LAYOUTS)] if signature.strided else CONTIGUOUS
        case = make_case(signature, chosen_sizes, values, seed, layout=layout, left_out=left_out)
        assert case is not None
        chosen = {"wide": WIDE[seed % len(WIDE)], "a": FLOATS[seed % len(FLOATS)]}
        given = {name: chosen.get(name, argument) for name, argument in case.arguments.items()}
        yield replace(case, arguments=given)


def _reads(signature: Signature, name: str) -> bool:
    return any(parameter.name == name for parameter in signature.parameters)
