"""The torch operators that host functions may call: a row each, with its names in Python, its schema and its header.

A schema is torch's own, less the arguments that host functions do not pass. Python names the first argument of a
function `input` where the schema says `self`. Two rows of one name are overloads: the first that takes the arguments of
a call is meant.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

HINT: Final = "`docs/host.md` lists the operators that host functions call"
_OPTIONS: Final = "ScalarType? dtype=None, Device? device=None"


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a schema: its name and type, its default in the schema's words, and whether it has a keyword."""

    name: str
    type: str
    default: str | None
    by_keyword: bool


@dataclass(frozen=True, slots=True)
class Operator:
    """A row: `functions` are names in `torch`, `method` a name in `torch.Tensor`, `sign` an operator of Python."""

    schema: str
    functions: tuple[str, ...] = ()
    method: str = ""
    sign: str = ""
    header: str = ""

    @property
    def name(self) -> str:
        """The name in `at::`."""
        return re.split(r"[.(]", self.schema)[0]

    @property
    def arguments(self) -> tuple[Argument, ...]:
        return _arguments(self.schema)

    @property
    def is_view(self) -> bool:
        """True where the result may be a view of the first argument."""
        return self.name in _VIEWS

    @property
    def returns_list(self) -> bool:
        return self.schema.endswith("-> Tensor[]")

    @property
    def takes_sizes_apart(self) -> bool:
        """True where a method, or a function without `self`, may take its integers one by one: `x.view(2, 3)`."""
        positional = [a for a in self.arguments if not a.by_keyword and a.name != "self"]
        return len(positional) == 1 and positional[0].type == "int[]"


@functools.cache
def _arguments(schema: str) -> tuple[Argument, ...]:
    by_keyword, found = False, []
    for text in schema[schema.index("(") + 1 : schema.rindex(") ->")].split(", "):
        if text == "*":
            by_keyword = True
            continue
        type_, _, name = text.partition(" ")
        name, has_default, default = name.partition("=")
        found.append(Argument(name, type_, default if has_default else None, by_keyword))
    return tuple(found)


def _creation(name: str, more: str = "") -> Iterable[Operator]:
    yield Operator(f"{name}(int[] size{more}, *, {_OPTIONS}) -> Tensor", (name,), header=name)
    like = f"{name}_like"
    yield Operator(f"{like}(Tensor self{more}, *, {_OPTIONS}) -> Tensor", (like,), header=like)
    if name != "ones":
        yield Operator(f"new_{name}(Tensor self, int[] size{more}, *, {_OPTIONS}) -> Tensor", method=f"new_{name}")


def _both(schema: str, *functions: str, sign: str = "") -> Operator:
    """A row of a function and a method of the schema's name."""
    name = re.split(r"[.(]", schema)[0]
    return Operator(schema, (name, *functions), name, sign, name)


def _binary(name: str, sign: str, more: str = "") -> Iterable[Operator]:
    yield _both(f"{name}.Tensor(Tensor self, Tensor other{more}) -> Tensor", sign=sign)
    yield _both(f"{name}.Scalar(Tensor self, Scalar other) -> Tensor", sign=sign)


def _reduction(name: str) -> Iterable[Operator]:
    yield _both(f"{name}(Tensor self, *, ScalarType? dtype=None) -> Tensor")
    yield _both(f"{name}.dim(Tensor self, int[1] dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor")


def _elementwise(name: str, *functions: str) -> Operator:
    return _both(f"{name}(Tensor self) -> Tensor", *functions)


_VIEWS: Final = {
    "view", "reshape", "flatten", "transpose", "t", "permute", "unsqueeze", "squeeze", "expand", "contiguous", "to",
    "chunk", "narrow", "select", "slice",
}  # fmt: skip
OPERATORS: Final[tuple[Operator, ...]] = (
    *_creation("empty"),
    *_creation("zeros"),
    *_creation("ones"),
    *_creation("full", ", Scalar fill_value"),
    # The same elements in another shape, or some of them.
    Operator("view(Tensor self, int[] size) -> Tensor", method="view"),
    Operator("reshape(Tensor self, int[] shape) -> Tensor", ("reshape",), "reshape", header="reshape"),
    _both("flatten(Tensor self, int start_dim=0, int end_dim=-1) -> Tensor"),
    _both("transpose(Tensor self, int dim0, int dim1) -> Tensor"),
    _both("t(Tensor self) -> Tensor"),
    Operator("permute(Tensor self, int[] dims) -> Tensor", ("permute",), "permute", header="permute"),
    _both("unsqueeze(Tensor self, int dim) -> Tensor"),
    _both("squeeze(Tensor self) -> Tensor"),
    _both("squeeze.dim(Tensor self, int dim) -> Tensor"),
    Operator("expand(Tensor self, int[] size) -> Tensor", method="expand"),
    Operator("contiguous(Tensor self) -> Tensor", method="contiguous"),
    Operator("to(Tensor self, ScalarType dtype) -> Tensor", method="to"),
    Operator("cat(Tensor[] tensors, int dim=0) -> Tensor", ("cat",), header="cat"),
    Operator("stack(Tensor[] tensors, int dim=0) -> Tensor", ("stack",), header="stack"),
    _both("chunk(Tensor self, int chunks, int dim=0) -> Tensor[]"),
    _both("narrow(Tensor self, int dim, int start, int length) -> Tensor"),
    _both("select(Tensor self, int dim, int index) -> Tensor"),
    # Arithmetic.
    *_binary("add", "+", ", *, Scalar alpha=1"),
    *_binary("sub", "-", ", *, Scalar alpha=1"),
    *_binary("mul", "*"),
    *_binary("div", "/"),
    _both("neg(Tensor self) -> Tensor"),
    _both("mm(Tensor self, Tensor mat2) -> Tensor"),
    _both("matmul(Tensor self, Tensor other) -> Tensor", sign="@"),
    _both("addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor"),
    *_reduction("sum"),
    *_reduction("mean"),
    _elementwise("sigmoid", "nn.functional.sigmoid"),
    _elementwise("tanh", "nn.functional.tanh"),
    _elementwise("relu", "nn.functional.relu"),
    _elementwise("exp"),
    _elementwise("sqrt"),
    Operator("elu(Tensor self, Scalar alpha=1.0) -> Tensor", ("nn.functional.elu",), header="elu"),
    Operator(
        "softmax(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
        ("softmax", "nn.functional.softmax"),
        "softmax",
        header="softmax",
    ),
    *_binary("eq", "=="),
    *_binary("ne", "!="),
    *_binary("lt", "<"),
    *_binary("le", "<="),
    *_binary("gt", ">"),
    *_binary("ge", ">="),
    Operator("where(Tensor condition, Tensor self, Tensor other) -> Tensor", ("where",), header="where"),
    Operator("where(Tensor condition, Tensor self, Scalar other) -> Tensor", ("where",), header="where"),
    Operator("where(Tensor condition, Scalar self, Tensor other) -> Tensor", ("where",), header="where"),
)


def functions_named(name: str) -> tuple[Operator, ...]:
    """The overloads of `torch.NAME`."""
    return tuple(row for row in OPERATORS if name in row.functions)


def methods_named(name: str) -> tuple[Operator, ...]:
    """The overloads of `torch.Tensor.NAME`."""
    return tuple(row for row in OPERATORS if row.method == name)


def with_sign(sign: str) -> tuple[Operator, ...]:
    """The overloads of an operator of Python."""
    return tuple(row for row in OPERATORS if row.sign == sign)


NAMES: Final = frozenset(name for row in OPERATORS for name in (*row.functions, row.method, row.name) if name)
