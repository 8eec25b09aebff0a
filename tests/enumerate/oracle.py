"""The oracle: CPython runs a kernel thread by thread, on elements of this module's own class.

In: the source of a kernel, whose imports and annotations are not evaluated, and its arguments. Out: the elements of
`y` behind each thread. Nothing here comes from py2cu: what a kernel means is the contract's section 5 alone.

CPython's own operators compute. Only `<<` and `**` are replaced, which might fill the memory, and every round of a loop
is counted, since a loop might not end.
"""

from __future__ import annotations

import ast
import functools
import math
import operator
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from types import FunctionType, SimpleNamespace
from typing import Any, Final

from tests.enumerate.leaves import CONSTANTS

ROUNDS: Final = 4000
"""The rounds of loops that a thread may run."""
NAME: Final = "f"
"""Of every kernel."""
LARGEST: Final = 600
"""The greatest exponent or shift that is computed."""


class Unmodelled(Exception):
    """The contract leaves the value open, refuses it at run time, or it is too large or too far for this oracle."""


# --- elements -----------------------------------------------------------------------------------------------------


class Element:
    """An integer of `bits` bits, signed, that wraps."""

    __slots__ = ("bits", "value")

    def __init__(self, value: int, bits: int) -> None:
        half = 1 << (bits - 1)
        self.value, self.bits = ((value + half) & (2 * half - 1)) - half, bits

    def __index__(self) -> int:
        return self.value

    __int__ = __trunc__ = __floor__ = __ceil__ = __hash__ = __index__  # type: ignore[assignment]

    def __float__(self) -> float:
        return float(self.value)

    def __bool__(self) -> bool:
        return self.value != 0

    def __repr__(self) -> str:
        return f"int{self.bits}({self.value})"

    def __neg__(self) -> Element:
        return Element(-self.value, self.bits)

    def __pos__(self) -> Element:
        return self

    def __abs__(self) -> Element:
        return Element(abs(self.value), self.bits)

    def __invert__(self) -> Element:
        return Element(~self.value, self.bits)

    def __round__(self, digits: int | None = None) -> int:
        if digits is not None:
            raise Unmodelled("digits")
        return self.value

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def bit_count(self) -> int:
        return abs(self.value).bit_count()


def _meet(a: Element, b: object) -> tuple[int, int]:
    """The number of `b`, which is weak unless it is an element, and the bits of the type in which the two meet."""
    if isinstance(b, Element):
        return b.value, max(a.bits, b.bits)
    if not isinstance(b, int):
        raise Unmodelled("an element beside a float")
    if Element(b, a.bits).value != b:
        raise Unmodelled(f"{b} does not fit int{a.bits}")
    return int(b), a.bits


def _install(name: str, compute: Callable[[int, int], int], *, is_comparison: bool = False) -> None:
    def method(self: Element, other: object) -> Any:
        value, bits = _meet(self, other)
        return (
            compute(self.value, value) if is_comparison else Element(_bounded(compute, self.value, value, bits), bits)
        )

    def reflected(self: Element, other: object) -> Any:
        value, bits = _meet(self, other)
        return Element(_bounded(compute, value, self.value, bits), bits)

    setattr(Element, f"__{name}__", method)
    if not is_comparison:
        setattr(Element, f"__r{name}__", reflected)


def _bounded(compute: Callable[[int, int], int], a: int, b: int, bits: int) -> int:
    if compute in (operator.lshift, operator.rshift) and b >= bits:
        raise Unmodelled("a shift by the width")
    if compute is operator.pow:
        if b < 0:
            raise Unmodelled("a negative power")
        return pow(a, b, 1 << 64)
    return compute(a, b)


for _name in ("add", "sub", "mul", "floordiv", "mod", "and_", "or_", "xor", "lshift", "rshift", "pow"):
    _install(_name.rstrip("_"), getattr(operator, _name))
for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    _install(_name, getattr(operator, _name), is_comparison=True)


def _true_division(self: Element, other: object) -> Any:
    raise Unmodelled("a float element")


Element.__truediv__ = Element.__rtruediv__ = _true_division  # type: ignore[attr-defined]


class Array:
    """Integers in rows, or a part of them: the axes from `axis` on, whose first starts at `start`."""

    def __init__(self, data: list[Any], shape: tuple[int, ...], bits: int, offset: int = 0, step: int | None = None):
        self.data, self.shape, self.bits, self.offset = data, shape, bits, offset
        self.step = math.prod(shape[1:]) if step is None else step

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return (self[k] for k in range(len(self)))

    def _part(self, index: int | slice) -> Array | int:
        """The part at `index` of the first axis, or a place."""
        if isinstance(index, slice):
            start, stop, _ = index.indices(self.shape[0])
            return Array(self.data, (max(stop - start, 0), *self.shape[1:]), self.bits, self.offset + start * self.step)
        at = operator.index(index)
        if not -self.shape[0] <= at < self.shape[0]:
            raise IndexError(f"{at} of {self.shape[0]}")
        place = self.offset + at % self.shape[0] * self.step
        return Array(self.data, self.shape[1:], self.bits, place) if len(self.shape) > 1 else place

    def _at(self, index: Any) -> Array | int:
        first, *rest = index if isinstance(index, tuple) else (index,)
        part = self._part(first)
        return part._at(tuple(rest)) if rest else part  # type: ignore[union-attr]

    def __getitem__(self, index: Any) -> Any:
        part = self._at(index)
        if isinstance(part, Array):
            return part
        if self.data[part] is None:
            raise Unmodelled("an element that nothing wrote")
        return Element(self.data[part], self.bits)

    def __setitem__(self, index: Any, value: Any) -> None:
        part = self._at(index)
        if not isinstance(part, Array):
            self.data[part] = _stored(value, self.bits)
            return
        items = [*value] if isinstance(value, tuple | list | Array) else [value] * len(part)
        if len(items) != len(part):
            raise ValueError(f"{len(items)} numbers for {len(part)} elements")
        for k, item in enumerate(items):
            part[k] = item


def _stored(value: Any, bits: int) -> int:
    if isinstance(value, float):
        if not abs(value) < 2 ** (bits - 1):
            raise Unmodelled("a float that does not fit")
        value = int(value)
    return Element(int(value), bits).value


# --- the kernel as CPython runs it --------------------------------------------------------------------------------


class _Counter:
    """The rounds that are left."""

    left = ROUNDS


def _tick() -> bool:
    _Counter.left -= 1
    if _Counter.left < 0:
        raise Unmodelled("a loop that takes long")
    return True


def _power(a: Any, b: Any) -> Any:
    if isinstance(a, int) and isinstance(b, int) and abs(b) > LARGEST and abs(a) > 1:
        raise Unmodelled("a power that is too large")
    return a**b


def _shift(a: Any, b: Any) -> Any:
    if isinstance(a, int) and isinstance(b, int) and b > LARGEST:
        raise Unmodelled("a shift that is too large")
    return a << b


_REPLACED: Final = {ast.Pow: "_power", ast.LShift: "_shift"}


class _Guarded(ast.NodeTransformer):
    """Calls `_power` and `_shift` in place of these operators, and `_tick` in each round."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        name = _REPLACED.get(type(node.op))
        return node if name is None else _call(name, node.left, node.right)

    def visit_For(self, node: ast.For) -> ast.For:
        self.generic_visit(node)
        node.body.insert(0, ast.Expr(_call("_tick")))
        return node

    def visit_While(self, node: ast.While) -> ast.While:
        self.generic_visit(node)
        node.body.insert(0, ast.Expr(_call("_tick")))
        return node

    def visit_comprehension(self, node: ast.comprehension) -> ast.comprehension:
        self.generic_visit(node)
        node.ifs.insert(0, _call("_tick"))
        return node


class _Watched(_Guarded):
    """Hands the result of each operation and call to `_see`, too."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        return _call("_see", super().visit_BinOp(node))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        self.generic_visit(node)
        return _call("_see", node)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        return _call("_see", node)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt | list[ast.stmt]:
        if isinstance(node.target, ast.Subscript):
            again = ast.parse(ast.unparse(node.target), mode="eval").body
            acts = any(isinstance(each, ast.Call | ast.NamedExpr) for each in ast.walk(again))
            self.generic_visit(node)
            return node if acts else [node, ast.Expr(_call("_see", again))]
        assert isinstance(node.target, ast.Name)
        value = self.visit(ast.BinOp(ast.Name(node.target.id, ast.Load()), node.op, node.value))
        return ast.Assign([node.target], value)


def _call(name: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), [*arguments], [])


def functions_alone(tree: ast.Module) -> ast.Module:
    """`tree` without imports, decorators and annotations of parameters."""
    tree.body = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    for node in tree.body:
        assert isinstance(node, ast.FunctionDef)
        node.decorator_list = []
        for parameter in node.args.args:
            parameter.annotation = None
    return tree


def _distance(p: Any, q: Any) -> float:
    if any(isinstance(each, Element) for each in (*p, *q)):
        raise Unmodelled("a function of floats of an element")
    distance = math.dist(p, q)
    neighbours = {int(math.nextafter(distance, end)) for end in (-math.inf, math.inf)}
    is_exact = Fraction(distance) ** 2 == sum((Fraction(a) - Fraction(b)) ** 2 for a, b in zip(p, q, strict=True))
    if neighbours != {int(distance)} and not is_exact:
        raise Unmodelled("a distance whose last bit, which CUDA may round otherwise, decides its integer")
    return distance


def _in_their_type(choose: Callable[..., Any]) -> Callable[..., Any]:
    """`min` or `max`: of elements, and of elements and numbers, it chooses in the type in which they meet."""

    def chosen(*values: Any, **options: Any) -> Any:
        each = list(values[0]) if len(values) == 1 else list(values)
        best = choose(each, **options)
        wide = [value.bits for value in (*each, *options.values()) if isinstance(value, Element)]
        return Element(int(best), max(wide)) if wide else best

    return chosen


def _sum_seen_by(see: Callable[[Any], Any]) -> Callable[..., Any]:
    """`sum`, whose partial sums `see` gets, too."""
    return lambda values, start=0: functools.reduce(lambda total, value: see(total + value), values, start)


_CHOICES: Final = {"min": _in_their_type(min), "max": _in_their_type(max)}
_MATH: Final = SimpleNamespace(gcd=math.gcd, lcm=math.lcm, isqrt=math.isqrt, dist=_distance)


def _local(shape: Any, _: object) -> Array:
    extents = shape if isinstance(shape, tuple) else (shape,)
    return Array([None] * math.prod(extents), extents, 64)


def read(source: str, see: Callable[[Any], Any] | None = None) -> FunctionType:
    """The kernel of `source`, the last of its functions; `see` gets what its operations and calls result in.

    Raises:
        SyntaxError: it is no Python.
    """
    tree = functions_alone(ast.parse(source))
    tree = ast.fix_missing_locations((_Guarded if see is None else _Watched)().visit(tree))
    names: dict[str, Any] = {**CONSTANTS, **_CHOICES, "math": _MATH, "local": _local, "_see": see}
    names |= {"_tick": _tick, "_power": _power, "_shift": _shift}
    if see is not None:
        names["sum"] = _sum_seen_by(see)
    exec(compile(tree, "kernel.py", "exec"), names)
    kernel = names[NAME]
    assert isinstance(kernel, FunctionType)
    return kernel


def run(kernel: FunctionType, arguments: Sequence[Any]) -> None:
    """One thread.

    Raises:
        Unmodelled: see there.
        Exception: what Python raises.
    """
    _Counter.left = ROUNDS
    kernel(*arguments)


def watch(source: str) -> tuple[FunctionType, SimpleNamespace]:
    """The kernel, and the least and the greatest integer that it has computed since `low` and `high` were set."""
    seen = SimpleNamespace(low=0, high=0)

    def see(value: Any) -> Any:
        for each in value if isinstance(value, tuple) else (value,):
            if isinstance(each, int):
                seen.low, seen.high = min(seen.low, each), max(seen.high, each)
        return value

    return read(source, see), seen
