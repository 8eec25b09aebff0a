"""Random kernels in Numba's spelling, for which NumPy's arithmetic, Numba's simulator's, and py2cu's are the same.

Out: `module(seed, numbers)`, the text of a module like `kernels.py`. Floats are float32, as `np.float32(…)` where they
are constants; functions of `math`, which the simulator computes in double, are converted at once and then only stored;
integers stay small; dtypes are not mixed.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Final

N: Final = 21  # of the arrays' elements
BLOCK: Final = 8
GRID: Final = 3
HEAD: Final = f'''"""Random kernels."""

import math

import numpy as np
from numba import cuda, int32, int64, float32

CASES, OWN = {{}}, set()
N, TABLE, WEIGHTS = {N}, (3, 1, 4, 1, 5), ((1, 2), (3, 4))


def enter(kernel):
    name = kernel.py_func.__name__ if hasattr(kernel, "py_func") else kernel.fn.__name__
    CASES[name] = kernel, ({GRID}, {BLOCK}), (
        lambda: np.linspace(-3, 3, N, dtype=np.float32), lambda: np.linspace(5, 1, N, dtype=np.float32),
        lambda: (np.arange(N * 4, dtype=np.float32) / 8 - 4).reshape(N, 4),
        lambda: (np.arange(N, dtype=np.int32) * 37) % 23 - 11, lambda: (np.arange(N) * 13) % 17, lambda: 5,
        lambda: np.float32(0.75), lambda: np.zeros(N, np.float32), lambda: np.zeros(N, np.int32),
        lambda: np.zeros(N, np.int64), lambda: np.zeros(4, np.int32),
    )
    return kernel


@cuda.jit(device=True)
def clamped(v, low, high):
    return min(max(v, low), high)


@cuda.jit(device=True)
def mixed(f, a, b):
    return f(a, b) - f(b, a)


@cuda.jit(device=True)
def scaled(a, b):
    return a * np.float32(2) + b


@cuda.jit(device=True)
def pair(a, b):
    if a > b:
        return b, a
    return a, b


@cuda.jit(device=True)
def row_sum(m, i):
    total = np.float32(0)
    for k in range(m.shape[1]):
        total += m[i, k]
    return total
'''
PARAMETERS: Final = "x, y, m, a, b, n, s, out, whole, long, bins"


@dataclass
class _Body:
    """The statements of one kernel as they are written: the locals of each kind that every path has assigned."""

    random: random.Random
    lines: list[str] = field(default_factory=list)
    floats: list[str] = field(default_factory=list)
    ints: list[str] = field(default_factory=list)
    depth: int = 1
    count: int = 0
    in_loop: bool = False

    def add(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def fresh(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def pick(self, *options: str) -> str:
        return self.random.choice(options)

    def float(self, depth: int = 2) -> str:
        """A float32: exact in every implementation."""
        leaves = ["x[i]", "y[i]", "s", f"np.float32({self.pick('0.5', '1.25', '-2', '3')})", "m[i, 1]", "m[i][2]"]
        leaves += [*self.floats, "x[(i + 1) % x.shape[0]]", f"m[i, {self.natural('4')}]"]
        if depth == 0:
            return self.random.choice(leaves)
        p, q = self.float(depth - 1), self.float(depth - 1)
        return self.random.choice([
            *leaves, f"({p} + {q})", f"({p} - {q})", f"({p} * {q})", f"(-{p})", f"abs({p})", f"min({p}, {q})",
            f"max({p}, {q})", f"({p} if {self.condition()} else {q})", f"({p} / (abs({q}) + np.float32(1)))",
            f"clamped({p}, np.float32(-2), np.float32(2))", f"mixed(scaled, {p}, {q})", "row_sum(m, i)",
            f"np.float32({self.int(1)})",
        ])  # fmt: skip

    def natural(self, below: str) -> str:
        """An index."""
        return f"({self.int(0)}) % {below}"

    def int(self, depth: int = 2) -> str:
        """A Python integer between -1000 and 1000."""
        leaves = ["i", "n", self.pick("2", "-3", "7"), "int(a[i])", "int(b[i])", "cuda.threadIdx.x", *self.ints]
        leaves += ["TABLE[i % 5]", "WEIGHTS[i % 2][1]", "len(TABLE)", "x.shape[0] - i"]
        if depth == 0:
            return self.random.choice(leaves)
        p, q = self.int(depth - 1), self.int(depth - 1)
        return self.random.choice([
            *leaves, f"({p} + {q}) % 97", f"({p} - {q}) % 89", f"({p} * {q}) % 101", f"({p} // 3)", f"({p} & 63)",
            f"(({p} ^ {q}) & 255)", f"(({p} | 1) % 50)", f"(({p} >> 2) + 1) % 40", f"min({p}, {q})", f"abs({p}) % 61",
            f"({p} if {self.condition()} else {q})", f"clamped({p}, -5, 30)",
        ])  # fmt: skip

    def element(self, dtype: str) -> str:
        """An element of the dtype, whose sums and products stay small."""
        name = "a" if dtype == "int32" else "b"
        one, constant = f"{name}[i]", self.pick("2", "3", "-1")
        return self.random.choice([
            one, f"({one} + {name}[{self.natural('N')}])", f"({one} * {constant})", f"({one} - {constant})",
            f"({one} // 3)", f"({one} % 7)", f"-{one}", f"np.{dtype}({self.int(1)})", f"({one} & 12)",
        ])  # fmt: skip

    def condition(self) -> str:
        left = self.random.choice([self.int, self.float])(0)
        right = self.pick("0", "1", "3") if left.startswith(("i", "n", "int", "cuda")) else self.pick("0", "1", "-1")
        simple = f"{left} {self.pick('<', '<=', '>', '>=', '==', '!=')} {right}"
        others = [f"({simple} and i % 2 == 0)", f"(not {simple})", f"0 <= i < {right} + 9"]
        return self.random.choice([simple, simple, *others])

    def statement(self, depth: int) -> None:
        kinds = ["float", "int", "store", "store", "augmented", "math", "atomic", "pair", "rows", "place"]
        kinds += ["if", "for", "while", "reduction"] if depth else []
        getattr(self, f"_{self.random.choice(kinds)}")(depth)

    def block(self, depth: int, least: int = 1) -> None:
        """Statements in a block, whose new locals end with it."""
        floats, ints = [*self.floats], [*self.ints]
        self.depth += 1
        for _ in range(self.random.randint(least, 2)):
            self.statement(depth - 1)
        self.depth -= 1
        self.floats, self.ints = floats, ints

    def _float(self, _: int) -> None:
        value, name = self.float(), self.fresh("f")
        self.add(f"{name} = np.float32({value})")
        self.floats.append(name)

    def _int(self, _: int) -> None:
        value, name = self.int(), self.fresh("k")
        self.add(f"{name} = {value}")
        self.ints.append(name)

    def _store(self, _: int) -> None:
        self.add(self.random.choice([
            f"out[i] = {self.float()}", f"whole[i] = {self.element('int32')}", f"long[i] = {self.element('int64')}",
            f"whole[i] = {self.int()}", f"long[i] = {self.int()}", f"out[i] = {self.condition()}",
        ]))  # fmt: skip

    def _augmented(self, _: int) -> None:
        self.add(self.random.choice([
            f"out[i] += {self.float()}", f"out[i] *= {self.float(1)}", f"long[i] += {self.int()}",
            f"whole[i] ^= {self.int()} & 31", f"long[i] -= {self.element('int64')}",
        ]))  # fmt: skip

    def _math(self, _: int) -> None:
        function = self.pick("exp", "sin", "cos", "tanh", "atan", "erf", "floor")
        self.add(f"out[i] = np.float32(math.{function}({self.pick('x[i]', 'y[i]', 's')}))")
        self.add(f"long[i] += {self.pick('math.floor', 'math.ceil', 'int', 'round')}({self.float(1)})")

    def _atomic(self, _: int) -> None:
        self.add(f"cuda.atomic.{self.pick('add', 'add', 'sub')}(bins, {self.natural('4')}, {self.int()})")

    def _pair(self, _: int) -> None:
        first, second = self.fresh("k"), self.fresh("k")
        self.add(f"{first}, {second} = pair({self.int(1)}, {self.int(1)})")
        self.ints += [first, second]
        if self.random.random() < 0.4:
            self.add(f"{first}, {second} = {second}, {first}")

    def _rows(self, _: int) -> None:
        row, total = self.fresh("row"), self.fresh("f")
        self.add(f"{row} = m[{self.natural('N')}]")
        self.add(f"{total} = np.float32(0)")
        self.add(f"for v in {row}{self.pick('', '[1:]', '[:3]')}:")
        self.add(f"    {total} = {self.pick(f'{total} + v', f'max({total}, v)', f'v - {total}')}")
        self.floats.append(total)

    def _place(self, _: int) -> None:
        place, value, count = self.fresh("at"), self.fresh("f"), self.fresh("k")
        pair = f"{self.natural('N')}, {self.natural('4')}"
        self.add(f"{place} = {self.pick(pair, f'({pair})', 'cuda.grid(2)')}")
        self.add(f"{value} = m[{place}]")
        self.add(f"{count} = {place}[0] - {place}[1]")
        self.floats.append(value)
        self.ints.append(count)
        if self.random.random() < 0.3:
            self.add(f"out[(i,)] = m[{place}]")

    def _if(self, depth: int) -> None:
        self.add(f"if {self.condition()}:")
        self.block(depth)
        if self.random.random() < 0.3:
            self.add(f"elif {self.condition()}:")
            self.block(depth)
        if self.random.random() < 0.6:
            self.add("else:")
            self.block(depth)

    def _for(self, depth: int) -> None:
        total, counter = self.fresh("f"), self.fresh("j")
        self.add(f"{total} = np.float32({self.pick('0', '1')})")
        self.add(f"for {counter} in range({self.pick('4', 'n', '1, 9, 3', '5, -1, -2', 'i % 4')}):")
        self.ints.append(counter)
        self.add(f"    {total} += {self.float(1)}")
        if self.random.random() < 0.3:
            self.add(f"    if {self.condition()}:")
            self.add(f"        {self.pick('break', 'continue')}")
        self.block(depth, least=0)
        self.ints.remove(counter)
        self.floats.append(total)

    def _while(self, depth: int) -> None:
        counter = self.fresh("w")
        self.add(f"{counter} = {self.pick('3', 'i % 4', 'n')}")
        self.add(f"while {counter} > 0:")
        self.add(f"    {counter} -= {self.pick('1', '2')}")
        self.ints.append(counter)
        self.block(depth, least=0)
        self.ints.remove(counter)

    def _reduction(self, depth: int) -> None:
        name = self.fresh("k")
        self.add(f"{name} = {self.pick('sum', 'min', 'max')}(({self.int(0)}, {self.int(0)}, 4))")
        self.ints.append(name)


def kernel(seed: int, number: int) -> str:
    """One kernel: a thread for each element, or a loop over a grid; some share an array in their block."""
    chosen = random.Random(f"{seed}/{number}")
    body = _Body(chosen)
    head = chosen.choice(["i = cuda.grid(1)", "i = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x"])
    style = chosen.choice(["guarded", "guarded", "returns", "stride", "shared"])
    body.add(head)
    if style == "stride":
        body.lines[-1] = "    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):"
        body.depth += 1
    elif style == "returns":
        body.add("if i >= x.shape[0]:")
        body.add("    return")
    elif style == "shared":
        body.add("tile = cuda.shared.array(8, float32)")
        body.add("t = cuda.threadIdx.x")
        body.add("tile[t] = x[i] if i < x.size else np.float32(0)")
        body.add("cuda.syncthreads()")
        body.add("if i < x.size:")
        body.depth += 1
        body.floats += ["tile[t]", "tile[7 - t]"]
    else:
        body.add("if i < x.size:")
        body.depth += 1
    for _ in range(chosen.randint(2, 5)):
        body.statement(2)
    body.add(f"out[i] = {body.float()}")
    return "\n".join([f"@enter\n@cuda.jit\ndef k{number}({PARAMETERS}):", *body.lines, ""])


def module(seed: int, numbers: range) -> str:
    """The text of a module with the kernels of these numbers."""
    return "\n\n".join([HEAD, *(kernel(seed, number) for number in numbers)])
