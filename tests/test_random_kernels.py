"""Random kernels of the language, well typed by construction: compiled code and Python agree on every one.

All kernels of a run are one file: translated twice, built once for the CPU and once with the CUDA text in its place
(`tests/emulator.py`), each then checked by itself. `PY2CU_RANDOM_KERNELS=400` makes more of them, `PY2CU_RANDOM_SEED`
others. A failure shows the kernel's Python.
"""

from __future__ import annotations

import dataclasses
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from py2cu.dtypes import BY_NAME, promote
from py2cu.pipeline import translate_file
from py2cu.source import SourceFile
from tests.emulator import emulate
from tests.test_kernel_cases import PRELUDE, Case, import_kernels, signature_of

pytest.importorskip("torch")

COUNT = int(os.environ.get("PY2CU_RANDOM_KERNELS", "40"))
SEED = int(os.environ.get("PY2CU_RANDOM_SEED", "0"))
INTS = ("uint8", "int16", "int32", "int64")
FLOATS = ("float32", "float64")
TYPES = (*INTS, *FLOATS, "bool")
BLOCK = 32  # small blocks: the shapes of a check follow them
EXTENT = 3 * BLOCK + 5  # the largest of those shapes
LIMIT = 2**62


@dataclasses.dataclass(frozen=True)
class Int:
    """A Python integer's text, and the values that it can have."""

    text: str
    low: int
    high: int


class Writer:
    """Writes one kernel. Elements are asked for by dtype; Python integers carry their range, so that none overflows."""

    def __init__(self, number: int) -> None:
        self.random = random.Random(f"{SEED}/{number}")
        self.name = f"kernel_{number}"
        self.lines: list[str] = []
        self.locals: dict[str, list[str]] = {kind: [] for kind in TYPES}
        self.ints = [Int("i", 0, EXTENT - 1), Int("m", 0, 4), Int("len(x_float32)", 0, EXTENT)]
        self.fresh = 0

    def pick(self, *choices: Callable[[], str]) -> str:
        return self.random.choice(choices)()

    def one(self, *texts: str) -> str:
        return self.random.choice(texts)

    # --- elements ---

    def element(self, kind: str, depth: int) -> str:
        """An expression whose value is an element of dtype `kind`."""
        if depth <= 0 or self.random.random() < 0.1:
            return self.one(*self.locals[kind], f"x_{kind}[i]", f"x_{kind}[i]")
        if kind == "bool":
            return self.pick(
                lambda: f"x_bool[{self.index()}]",
                lambda: f"({self.element(kind, depth - 1)} {self.one('&', '|', '^')} {self.element(kind, depth - 1)})",
                lambda: f"(~{self.element(kind, depth - 1)})",
                lambda: f"np.bool_({self.element(self.one(*INTS, *FLOATS), depth - 1)})",
            )
        a, b = self.element(kind, depth - 1), self.partner(kind, depth - 1)
        shared: list[Callable[[], str]] = [
            lambda: f"({a} {self.one('+', '-', '*')} {b})",
            lambda: f"({b} {self.one('+', '-', '*', '+')} {a})",
            lambda: f"(-{a})",
            lambda: f"abs({a})",
            lambda: f"{self.one('min', 'max')}({a}, {b})",
            lambda: f"({a} if {self.condition(depth - 1)} else {self.element(kind, depth - 1)})",
            lambda: f"({a} {self.one('and', 'or')} {self.element(kind, depth - 1)})",
            lambda: f"np.{kind}({self.element(self.one(*INTS, 'bool', *FLOATS * (kind in FLOATS)), depth - 1)})",
            lambda: f"x_{kind}[{self.index()}]",
        ]
        own = self.float_choices(a, b) if kind in FLOATS else self.int_choices(kind, a)
        return self.pick(*(shared if self.random.random() < 0.6 else own))

    def float_choices(self, a: str, b: str) -> list[Callable[[], str]]:
        return [
            lambda: f"({a} {self.one('/', '/', '//', '%')} {b})",
            lambda: f"math.{self.one('sin', 'tanh', 'sqrt', 'atan', 'erf', 'fabs', 'cbrt', 'expm1')}({a})",
            lambda: f"math.{self.one('atan2', 'hypot', 'copysign', 'fmod')}({a}, {b})",
            lambda: f"({a} ** {self.one('2', '3', '0.5', '-1')})",
            lambda: f"({a} {self.one('+', '-', '*')} {self.number()})",
        ]

    def int_choices(self, kind: str, a: str) -> list[Callable[[], str]]:
        def same() -> str:
            return self.element(kind, 0)

        def constant() -> str:
            return str(self.random.choice([1, 2, 3, 7, 100] + [-1, -5] * (kind != "uint8")))

        return [
            lambda: f"({a} {self.one('//', '%')} ({same()} or {constant()}))",
            lambda: f"({a} {self.one('//', '%', '+', '-', '*')} {constant()})",
            lambda: f"({a} {self.one('<<', '>>')} {self.one('0', '1', '3', '7')})",
            lambda: f"({a} {self.one('<<', '>>')} ({same()} & {self.one('7', '31', '63')}))",
            lambda: f"({a} {self.one('&', '|', '^')} {self.one(same(), constant())})",
            lambda: f"(~{a})",
            lambda: f"({a} ** {self.one('0', '1', '2', '3')})",
        ]

    def partner(self, kind: str, depth: int) -> str:
        """What meets an element of `kind` and leaves its dtype: an element that promotes to it, or a number that fits."""
        dtype = BY_NAME[kind]
        if self.random.random() < 0.3:
            value = self.integer(depth)
            if kind in FLOATS or (dtype.low <= value.low and value.high <= dtype.high):
                return value.text
        others = [t for t in TYPES if t != "bool" and promote(BY_NAME[t], dtype) is dtype]
        return self.element(self.one(*others), depth)

    # --- Python's numbers ---

    def number(self) -> str:
        """A Python float."""
        return self.one("a", "0.1", "2.5", "1e-3", "(a * 0.1)", "(i / 3)", "float(x_float32[i])", "math.pi", "-0.75")

    def integer(self, depth: int) -> Int:
        """A Python integer of known range."""
        choice = self.random.randrange(10) if depth > 0 else 0
        if choice <= 1:
            size = self.random.choice([9, 300, 2**33])
            constant = self.random.randint(-size, size)
            return self.random.choice([*self.ints, Int(f"({constant})", constant, constant)])
        if choice == 2:
            modulus = self.random.choice([2, 7, 1000, -3])
            inner = self.random.choice([f"int(x_{self.one(*INTS)}[i])", self.integer(depth - 1).text])
            return Int(f"({inner} % {modulus})", min(0, modulus + 1), max(0, modulus - 1))
        if choice == 3:
            kind = self.one("uint8", "int16", "int32", "bool")
            return Int(f"int({self.element(kind, depth - 1)})", int(BY_NAME[kind].low), int(BY_NAME[kind].high))
        if choice == 4:
            return Int(f"int({self.condition(depth - 1)})", 0, 1)
        a, b = self.integer(depth - 1), self.integer(depth - 1)
        made = self.combine(choice, a, b)
        return made if made.low > -LIMIT and made.high < LIMIT else a

    def combine(self, choice: int, a: Int, b: Int) -> Int:
        if choice == 5:
            return Int(f"({a.text} + {b.text})", a.low + b.low, a.high + b.high)
        if choice == 6:
            return Int(f"({a.text} - {b.text})", a.low - b.high, a.high - b.low)
        if choice == 7:
            corners = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
            return Int(f"({a.text} * {b.text})", min(corners), max(corners))
        if choice == 8:
            name, pick = self.random.choice([("min", min), ("max", max)])
            return Int(f"{name}({a.text}, {b.text})", pick(a.low, b.low), pick(a.high, b.high))
        divisor = self.random.choice([2, 3, 10, -4])
        quotients = [a.low // divisor, a.high // divisor]
        return Int(f"({a.text} // {divisor})", min(quotients), max(quotients))

    def index(self) -> str:
        return f"({self.integer(1).text}) % len(x_float32)"

    def condition(self, depth: int) -> str:
        """A Python bool."""
        if depth > 0 and self.random.random() < 0.3:
            word = self.one("and", "or")
            return self.one(
                f"({self.condition(depth - 1)} {word} {self.condition(depth - 1)})",
                f"(not {self.condition(depth - 1)})",
            )
        compare = ("<", "<=", "==", "!=", ">", ">=")
        kind = self.one(*INTS, *FLOATS)
        if self.random.random() < 0.4:
            low, high = self.integer(depth - 1), self.integer(depth - 1)
            return self.one(f"({low.text} {self.one(*compare)} {high.text})", f"({low.text} <= i < {high.text})")
        return f"({self.element(kind, depth - 1)} {self.one(*compare)} {self.partner(kind, depth - 1)})"

    # --- statements ---

    def add(self, indent: int, *lines: str) -> None:
        self.lines += [f"{'    ' * indent}{line}" for line in lines]

    def new(self) -> str:
        self.fresh += 1
        return f"t{self.fresh}"

    def statement(self, indent: int, in_loop: bool = False) -> None:
        kind, roll = self.one(*TYPES), self.random.random()
        value = self.element(kind, 3)
        if roll < 0.25:
            name = self.new()
            self.add(indent, f"{name} = {value}")
            if indent == 1:
                self.locals[kind].append(name)
        elif roll < 0.4 and self.locals[kind]:
            self.add(indent, f"{self.one(*self.locals[kind])} = {value}")
        elif roll < 0.5 and kind != "bool" and self.locals[kind]:
            self.add(indent, f"{self.one(*self.locals[kind])} {self.one('+', '-', '*')}= {self.partner(kind, 2)}")
        elif roll < 0.6:
            self.add(indent, f"if {self.condition(2)}:")
            self.block(indent + 1, in_loop)
            if self.random.random() < 0.5:
                self.add(indent, "else:")
                self.block(indent + 1, in_loop)
        elif roll < 0.75 and indent < 3:
            self.loop(indent)
        elif roll < 0.8 and in_loop:
            self.add(indent, f"if {self.condition(1)}: {self.one('break', 'continue')}")
        elif roll < 0.9 and len(self.locals[kind]) > 1:
            first, second = self.random.sample(self.locals[kind], 2)
            self.add(indent, f"{first}, {second} = {second}, {first}")
        else:
            self.store(indent)

    def store(self, indent: int) -> None:
        target, kind = self.one(*TYPES), self.one(*TYPES)
        operator = self.one("=", "=", "+=", "*=") if target not in ("bool",) and kind == target else "="
        value = self.one(
            self.element(kind, 3), self.element(kind, 2), self.integer(3).text if target != "bool" else "True"
        )
        self.add(indent, f"out_{target}[i] {operator if 'x_' in value else '='} {value}")

    def block(self, indent: int, in_loop: bool) -> None:
        for _ in range(self.random.randint(1, 2)):
            self.statement(indent, in_loop)

    def loop(self, indent: int) -> None:
        if self.random.random() < 0.25:
            counter = self.new()
            self.add(
                indent, f"{counter} = {self.random.randint(1, 5)}", f"while {counter} > 0 and {self.condition(1)}:"
            )
            self.add(indent + 1, f"{counter} -= 1")
            return self.block(indent + 1, in_loop=True)
        var = self.one("k", "j")
        start, stop = self.random.randint(-3, 3), self.random.randint(-3, 6)
        step = self.random.choice([1, 1, 2, -1, -3])
        last = self.one(str(stop), f"m + {stop}", f"i % 5 + {stop}")
        self.add(indent, f"for {var} in range({start}, {last}, {step}):")
        self.ints.append(Int(var, min(start, -5), max(start, 12)))
        if self.random.random() < 0.3:
            self.add(indent + 1, f"{var} = {var} // 2")
        self.block(indent + 1, in_loop=True)
        self.ints.pop()
        return None

    def write(self) -> str:
        """The kernel's source."""
        for _ in range(self.random.randint(3, 7)):
            self.statement(1)
        for kind in TYPES:
            self.add(1, f"out_{kind}[i] = {self.element(kind, 3)}")
        arrays = [f'{side}_{kind}: {BY_NAME[kind].jaxtyping}[Tensor, "n"]' for side in ("x", "out") for kind in TYPES]
        parameters = ['i: Index["n"]', *arrays[: len(TYPES)], "m: int", "a: float", *arrays[len(TYPES) :]]
        return "\n".join([f"@kernel(block={BLOCK})", f"def {self.name}({', '.join(parameters)}):", *self.lines, ""])


def sources() -> Iterator[str]:
    yield from (Writer(number).write() for number in range(COUNT))


@pytest.fixture(scope="module")
def translation():
    return translate_file(SourceFile("random_kernels.py", PRELUDE + "\n\n".join(sources())))


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    case = Case(tmp_path_factory.mktemp("random") / "random_kernels.case", "", {"python": "\n\n".join(sources())})
    return import_kernels(case, case.path.parent)


@pytest.mark.parametrize("target", ["cpu", "cuda"])
@pytest.mark.parametrize("number", range(COUNT))
def test_compiled_code_matches_python(number, target, translation, kernels, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)  # a CPU build, wherever this runs
    whole = translation if target == "cpu" else emulate(translation)
    kernel = kernels[number]
    signature = signature_of(kernel, whole)
    report = kernel.with_translation(dataclasses.replace(whole, signatures=(signature,))).check()
    assert report.ok, f"{report}\n\n{Writer(number).write()}"


def test_translation_does_not_depend_on_hashes(translation):
    program = (
        "from tests.test_random_kernels import *\n"
        "text = translate_file(SourceFile('random_kernels.py', PRELUDE + '\\n\\n'.join(sources())))\n"
        "print(text.cuda.kernel.text + text.cpu.kernel.text + text.cpu.binding.text)"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "1"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == f"{translation.cuda.kernel.text}{translation.cpu.kernel.text}{translation.cpu.binding.text}\n"
