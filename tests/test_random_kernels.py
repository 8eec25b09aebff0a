"""Random kernels of the language, well typed by construction: compiled code and Python agree on every one.

They are one file: built once for the CPU and once with the CUDA text in its place (`tests/emulator.py`), each kernel
then checked by itself. `PY2CU_RANDOM_KERNELS=400` makes more, `PY2CU_RANDOM_SEED=1` others.
"""

from __future__ import annotations

import dataclasses
import os
import random
import subprocess
import sys
from collections.abc import Callable
from typing import NamedTuple

import pytest

from py2cu.dtypes import BY_NAME, promote
from py2cu.pipeline import translate_file
from py2cu.source import SourceFile
from py2cu.translation import TargetName
from tests.emulator import emulate
from tests.test_kernel_cases import PRELUDE, Case, import_kernels, signature_of

pytest.importorskip("torch")

from py2cu.runtime.build import load

COUNT = int(os.environ.get("PY2CU_RANDOM_KERNELS", "40"))
SEED = int(os.environ.get("PY2CU_RANDOM_SEED", "0"))
INTS = ("uint8", "int16", "int32", "int64")
FLOATS = ("float32", "float64")
TYPES = (*INTS, *FLOATS, "bool")
BLOCK = 32  # small blocks: the shapes of a check follow them


class Int(NamedTuple):
    """A Python integer's text, and the values that it can have."""

    text: str
    low: int
    high: int

    def fits(self, kind: str) -> bool:
        return kind in FLOATS or (BY_NAME[kind].low <= self.low and self.high <= BY_NAME[kind].high)


class Writer:
    """Writes one kernel. Elements are asked for by dtype; Python integers carry their range, so that none overflows."""

    def __init__(self, number: int) -> None:
        self.random = random.Random(f"{SEED}/{number}")
        self.lines: list[str] = []
        self.number = number
        self.locals: dict[str, list[str]] = {kind: [] for kind in TYPES}
        self.ints = [Int("i", 0, 3 * BLOCK + 4), Int("m", 0, 4), Int("len(x_float32)", 0, 3 * BLOCK + 5)]
        self.counters = 0

    def one(self, *choices: str) -> str:
        return self.random.choice(choices)

    def any(self, *choices: Callable[[], str]) -> str:
        return self.random.choice(choices)()

    def add(self, indent: int, *lines: str) -> None:
        self.lines += [f"{'    ' * indent}{line}" for line in lines]

    def element(self, kind: str, depth: int) -> str:
        """An expression whose value is an element of dtype `kind`."""
        if depth <= 0 or self.random.random() < 0.1:
            return self.one(
                *self.locals[kind], f"x_{kind}[i]", f"x_{kind}[i]", f"x_{kind}[{self.integer(1).text} % len(x_float32)]"
            )
        a = self.element(kind, depth - 1)
        if kind == "bool":
            return self.any(
                lambda: f"({a} {self.one('&', '|', '^')} {self.element(kind, depth - 1)})",
                lambda: f"(~{a})",
                lambda: f"np.bool_({self.element(self.one(*INTS, *FLOATS), depth - 1)})",
            )
        if self.random.random() < 0.4:
            return self.float_only(kind, a, depth) if kind in FLOATS else self.int_only(kind, a)
        b = self.partner(kind, depth - 1)
        return self.any(
            lambda: f"({a} {self.one('+', '-', '*')} {b})",
            lambda: f"({b} {self.one('+', '-', '*')} {a})",
            lambda: f"{self.one('-', 'abs')}({a})",
            lambda: f"{self.one('min', 'max')}({a}, {b})",
            lambda: f"({a} if {self.condition(depth - 1)} else {self.element(kind, depth - 1)})",
            lambda: f"({a} {self.one('and', 'or')} {self.element(kind, depth - 1)})",
            lambda: f"np.{kind}({self.element(self.one(*INTS, 'bool', *FLOATS * (kind in FLOATS)), depth - 1)})",
        )

    def float_only(self, kind: str, a: str, depth: int) -> str:
        b = self.partner(kind, depth - 1)
        return self.any(
            lambda: f"({a} / {b})",
            lambda: f"(x_{kind}[i] {self.one('//', '%')} {self.one('0.7', '-1.5', f'x_{kind}[m % len(x_float32)]')})",
            lambda: f"math.{self.one('sin', 'tanh', 'sqrt', 'atan', 'erf', 'fabs', 'cbrt', 'expm1')}({a})",
            lambda: f"math.{self.one('atan2', 'hypot')}({a}, {b})",
            lambda: f"({a} ** {self.one('2', '3', '0.5', '-1')})",
            lambda: f"({a} {self.one('+', '-', '*')} {self.one('a', '0.1', '1e-3', '(i / 3)', '(a * 0.1)', '-0.75')})",
        )

    def int_only(self, kind: str, a: str) -> str:
        b = self.element(kind, 0)
        constant = str(self.random.choice([1, 2, 3, 7, 100] + [-1, -5] * (kind != "uint8")))
        return self.any(
            lambda: f"({a} {self.one('//', '%')} ({b} or {constant}))",
            lambda: f"({a} {self.one('//', '%', '+', '-', '*')} {constant})",
            lambda: f"({a} {self.one('<<', '>>')} {self.one('0', '1', '3', '7')})",
            lambda: f"({a} {self.one('<<', '>>')} ({b} & 7))",
            lambda: f"({a} {self.one('&', '|', '^')} {self.one(b, constant)})",
            lambda: f"(~{a})",
            lambda: f"({a} ** {self.one('0', '1', '2', '3')})",
        )

    def partner(self, kind: str, depth: int) -> str:
        """What meets an element of `kind` and leaves its dtype: one that promotes to it, or a number that fits."""
        if self.random.random() < 0.3 and (number := self.integer(depth)).fits(kind):
            return number.text
        narrower = [other for other in INTS + FLOATS if promote(BY_NAME[other], BY_NAME[kind]).name == kind]
        return self.element(self.one(*narrower), depth)

    def integer(self, depth: int) -> Int:
        """A Python integer."""
        roll = self.random.choice([0, 1, 2, 3, 5, 6, 7, 8, 9]) if depth > 0 else 0
        if roll <= 1:
            value = int(self.random.uniform(-1, 1) * self.random.choice([9, 300, 2**33]))
            return self.random.choice([*self.ints, Int(f"({value})", value, value)])
        if roll == 2:
            modulus = self.random.choice([2, 7, 1000, -3])
            inner = self.one(f"int(x_{self.one(*INTS)}[i])", self.integer(depth - 1).text)
            return Int(f"({inner} % {modulus})", min(0, modulus + 1), max(0, modulus - 1))
        if roll == 3:  # of a bool: the condition of a Python `if`, counted
            kind = self.one("uint8", "int16", "int32", "bool")
            inner = self.condition(depth - 1) if kind == "bool" else self.element(kind, depth - 1)
            return Int(f"int({inner})", int(BY_NAME[kind].low), int(BY_NAME[kind].high))
        a, b = self.integer(depth - 1), self.integer(depth - 1)
        divisor = self.random.choice([2, 3, 10, -4])
        form = ("({0} + {1})", "({0} - {1})", "({0} * {1})", "max({0}, {1})", f"({{0}} // {divisor})")[roll - 5]
        corners = [eval(form.format(x, y)) for x in (a.low, a.high) for y in (b.low, b.high)]
        made = Int(form.format(a.text, b.text), min(corners), max(corners))
        return made if max(-made.low, made.high) < 2**62 else a

    def condition(self, depth: int) -> str:
        """A Python bool."""
        roll, compare = self.random.random(), self.one("<", "<=", "==", "!=", ">", ">=")
        if depth > 0 and roll < 0.15:
            return f"({self.condition(depth - 1)} {self.one('and', 'or')} {self.condition(depth - 1)})"
        if depth > 0 and roll < 0.3:
            return f"(not {self.element(self.one(*TYPES), depth - 1)})"
        if roll < 0.6:
            a, b = self.integer(depth - 1).text, self.integer(depth - 1).text
            return self.one(f"({a} {compare} {b})", f"({a} <= i < {b})")
        kind = self.one(*INTS, *FLOATS)
        return f"({self.element(kind, depth - 1)} {compare} {self.partner(kind, depth - 1)})"

    def statement(self, indent: int, in_loop: bool = False) -> None:
        kind, roll = self.one(*TYPES), self.random.random()
        known = self.locals[kind]
        if roll < 0.3 and indent == 1:
            self.add(indent, f"t_{kind}_{len(known)} = {self.element(kind, 2)}")
            known.append(f"t_{kind}_{len(known)}")
        elif roll < 0.4 and known:
            self.add(indent, f"{self.one(*known)} = {self.element(kind, 2)}")
        elif roll < 0.5 and known and kind != "bool":
            self.add(indent, f"{self.one(*known)} {self.one('+', '-', '*')}= {self.partner(kind, 2)}")
        elif roll < 0.65 and indent < 4:
            for head in [f"if {self.condition(2)}:", "else:"][: self.random.randint(1, 2)]:
                self.add(indent, head)
                self.block(indent + 1, in_loop)
        elif roll < 0.8 and indent < 3:
            self.loop(indent)
        elif roll < 0.85 and in_loop:
            self.add(indent, f"if {self.condition(1)}: {self.one('break', 'continue')}")
        elif roll < 0.9 and len(known) > 1:
            self.add(indent, "{0}, {1} = {1}, {0}".format(*self.random.sample(known, 2)))
        elif roll < 0.95 and kind != "bool":
            self.add(indent, f"out_{kind}[i] = {self.element(kind, 1)}", f"out_{kind}[i] += {self.partner(kind, 2)}")
        else:
            number = self.integer(3)
            stored = number.text if number.fits(kind) else self.element(self.one(*TYPES), 3)
            self.add(indent, f"out_{kind}[i] = {stored}")

    def block(self, indent: int, in_loop: bool = False, count: int = 2) -> None:
        for _ in range(self.random.randint(1, count)):
            self.statement(indent, in_loop)

    def loop(self, indent: int) -> None:
        if self.random.random() < 0.25:
            self.counters += 1
            left = f"left_{self.counters}"
            self.add(indent, f"{left} = 5", f"while {left} > 0 and {self.condition(1)}:", f"    {left} -= 1")
            self.block(indent + 1, in_loop=True)
            return
        var, start, stop = self.one("k", "j"), self.random.randint(-3, 3), self.random.randint(-3, 6)
        last = self.one(str(stop), f"m + {stop}", f"i % 5 + {stop}")
        self.add(indent, f"for {var} in range({start}, {last}, {self.one('1', '1', '2', '-1', '-3')}):")
        self.ints.append(Int(var, -9, 12))
        if self.random.random() < 0.3:
            self.add(indent + 1, f"{var} = {var} // 2")
        self.block(indent + 1, in_loop=True)
        self.ints.pop()

    def write(self) -> str:
        """The kernel's source."""
        self.block(1, count=4)
        for kind in TYPES:
            self.add(1, f"out_{kind}[i] = {self.element(kind, 2)}")
        arrays = [f'{side}_{kind}: {BY_NAME[kind].jaxtyping}[Tensor, "n"]' for side in ("x", "out") for kind in TYPES]
        parameters = ['i: Index["n"]', *arrays[: len(TYPES)], "m: int", "a: float", *arrays[len(TYPES) :]]
        return "\n".join(
            [f"@kernel(block={BLOCK})", f"def kernel_{self.number}({', '.join(parameters)}):", *self.lines, ""]
        )


def python(count: int = COUNT) -> str:
    return "\n\n".join([PRELUDE, *(Writer(number).write() for number in range(count))])


@pytest.fixture(scope="module")
def translations():
    translation = translate_file(SourceFile("random_kernels.py", python()))
    both = {"cpu": translation, "cuda": emulate(translation)}
    for each in both.values():
        load(each.texts[TargetName.CPU])  # here, so that a text that does not compile is compiled once
    return both


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    place = tmp_path_factory.mktemp("random")
    return import_kernels(Case(place / "random_kernels.case", "", {"python": python().removeprefix(PRELUDE)}), place)


@pytest.mark.parametrize("target", ["cpu", "cuda"])
@pytest.mark.parametrize("number", range(COUNT))
def test_compiled_code_matches_python(number, target, translations, kernels, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)  # a CPU build, wherever this runs
    kernel, whole = kernels[number], translations[target]
    report = kernel.with_translation(dataclasses.replace(whole, signatures=(signature_of(kernel, whole),))).check()
    assert report.ok, f"{report}\n\n{Writer(number).write()}"


def test_translation_does_not_depend_on_hashes():
    program = "import tests.test_random_kernels as t; print(t.translate_file(t.SourceFile('few.py', t.python(5))))"
    environment = {**os.environ, "PYTHONHASHSEED": "1"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == f"{translate_file(SourceFile('few.py', python(5)))}\n"
