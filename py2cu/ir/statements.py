"""Statement nodes of the IR; their expressions are in `expressions.py`, the kernels that hold them in `kernels.py`."""

from __future__ import annotations

import enum
from dataclasses import field

from py2cu.ir.expressions import Atomic, DeviceCall, Expr, Load
from py2cu.ir.types import PY_INT, ScalarType, ValueType, span_field
from py2cu.records import record
from py2cu.source import Span

__all__ = [
    "BARE", "Alloc", "Assert", "Assign", "Block", "Break", "Comment", "Continue", "DeclareLocal", "Delete",
    "EachPack", "EachThread", "ExprStmt", "Field", "For", "If", "PackNames", "Print", "Return", "Stmt", "Store",
    "StructuredBinding", "Sync", "ThreadOrder", "Trivia", "While",
]  # fmt: skip


@record(frozen=True, slots=True)
class Trivia:
    """What stands around a statement in the Python: comment lines above ("" is a blank line), a comment beside."""

    above: tuple[str, ...] = ()
    beside: str = ""


BARE = Trivia()


def _trivia() -> Trivia:
    return field(default=BARE, compare=False)


@record(frozen=True, slots=True)
class Assign:
    """`name = value`; `augmented` where the user wrote `name op= …` (value is then `name op …`)."""

    name: str
    value: Expr
    span: Span = span_field()
    trivia: Trivia = _trivia()
    augmented: bool = False
    declares: ValueType | None = None  # set by `place_declarations`: this assignment is the declaration


@record(frozen=True, slots=True)
class DeclareLocal:
    """A local that needs its declaration before the block that first assigns it."""

    name: str
    type: ScalarType
    span: Span = span_field()
    trivia: Trivia = _trivia()


@record(frozen=True, slots=True)
class StructuredBinding:
    """`a, b = f(x)` where both names are declared; made by `make_structured_bindings`."""

    names: tuple[str, ...]
    value: Expr
    is_const: bool
    span: Span = span_field()
    trivia: Trivia = _trivia()


@record(frozen=True, slots=True)
class Alloc:
    """`array = local(shape, dtype)`: from here on the kernel's own `array` may be used; its elements are unset.

    `start`: for a view, the index in its base array of its first element; else None. `values`: the elements
    that `place_declarations` put into the declaration, the last index fastest; none of them for zeros.
    """

    array: str
    span: Span = span_field()
    trivia: Trivia = _trivia()
    start: Expr | None = None
    values: tuple[Expr, ...] | None = None


@record(frozen=True, slots=True)
class Store:
    """`array[indices] = value`; `hint` is the cache hint of `stcs(array, indices, value)`."""

    array: str
    indices: tuple[Expr, ...]
    value: Expr
    span: Span = span_field()
    trivia: Trivia = _trivia()
    augmented: bool = False
    hint: str = ""


@record(frozen=True, slots=True)
class If:
    test: Expr
    body: Block
    orelse: Block = ()
    span: Span = span_field()
    trivia: Trivia = _trivia()
    chained: bool = False  # written `elif`


@record(frozen=True, slots=True)
class For:
    """`for var in range(start, stop, step)`; `orelse` runs unless the loop is left by `break`, until `lower_loops`.

    `unroll`: the unroll factor, 0 for full unrolling; None leaves it to the compiler.
    """

    var: str
    start: Expr
    stop: Expr
    step: Expr
    body: Block
    span: Span = span_field()
    trivia: Trivia = _trivia()
    type: ScalarType = PY_INT
    direction: int = 0  # set by lower_semantics: the sign of `step` where it is known
    orelse: Block = ()
    unroll: int | None = None


@record(frozen=True, slots=True)
class While:
    """`while test`; `for (start; test; advance)` in C where `make_counting_loops` has set the last two."""

    test: Expr
    body: Block
    span: Span = span_field()
    trivia: Trivia = _trivia()
    orelse: Block = ()
    start: Block = ()
    advance: Block = ()


@record(frozen=True, slots=True)
class Break:
    span: Span = span_field()
    trivia: Trivia = _trivia()


@record(frozen=True, slots=True)
class Continue:
    span: Span = span_field()
    trivia: Trivia = _trivia()


@record(frozen=True, slots=True)
class Return:
    """Ends the thread, or a device function with its result."""

    span: Span = span_field()
    trivia: Trivia = _trivia()
    value: Expr | None = None


@record(frozen=True, slots=True)
class ExprStmt:
    """A call of a device function for what it does to its arrays, or an atomic operation whose result is not used."""

    call: DeviceCall | Atomic
    span: Span = span_field()
    trivia: Trivia = _trivia()


@record(frozen=True, slots=True)
class Sync:
    """A barrier, or a fence of memory: `function` is its Python name, `syncthreads`, `syncwarp`, `threadfence`; on the
    CPU also the yield of `insert_yields`.
    """

    function: str
    args: tuple[Expr, ...] = ()
    span: Span = span_field()
    trivia: Trivia = _trivia()


class ThreadOrder(enum.Enum):
    """The order in which the CPU runs the threads of a block between two barriers."""

    ANY = enum.auto()  # threads do not observe each other
    IN_ORDER = enum.auto()  # a thread may observe earlier threads, as with atomics
    WAITING = enum.auto()  # a thread may wait for a later one: threads are fibers


@record(frozen=True, slots=True)
class EachThread:
    """The statements that each thread of a block runs between two barriers; made by `split_at_barriers`."""

    body: Block
    turns: ThreadOrder = ThreadOrder.ANY
    span: Span = span_field()
    trivia: Trivia = _trivia()


@record(frozen=True, slots=True)
class PackNames:
    """What a kernel that computes packs calls its template arguments and locals; none is a name of the user's."""

    width: str = "N"
    count: str = "PACKS"
    first: str = "first"
    step: str = "step"
    pack: str = "pack"
    place: str = "k"
    last: str = "last"
    result: str = "result"


@record(frozen=True, slots=True)
class EachPack:
    """The elements of one thread of an index kernel, side by side on its fastest axis; made by `pack_elements`.

    `element` computes the results of one element, of the `values` that `loads` read at `index`, and they go to the
    places `stores`. Two template arguments say how many elements are neighbours, and how many packs of them a thread
    has, a block apart.
    """

    index: str
    extent: Expr
    loads: tuple[Load, ...]
    values: tuple[str, ...]
    element: DeviceCall
    stores: tuple[Load, ...]
    results: tuple[str, ...]  # the fields of the element's struct; one result has none
    packs: tuple[str, ...]  # the locals that hold the packs of `loads`, and then of `stores`
    is_whole: bool  # rows are multiples of a pack: nothing is left over
    names: PackNames
    span: Span = span_field()
    trivia: Trivia = _trivia()


@record(frozen=True, slots=True)
class Delete:
    """`del name`: nothing in C++, where `check_definite_assignment` has found that nothing reads it any more."""

    name: str
    span: Span = span_field()
    trivia: Trivia = _trivia()


@record(frozen=True, slots=True)
class Field:
    """How one value is printed: flags, width and precision as C writes them, and the letter of its type.

    The letter is the user's, or "" until `infer_types` sets it; "s" prints a bool as a word.
    """

    layout: str = ""
    letter: str = ""
    span: Span = span_field()


@record(frozen=True, slots=True)
class Print:
    """`print(…)`: text, value, text, value, …, text."""

    texts: tuple[str, ...]
    values: tuple[Expr, ...]
    fields: tuple[Field, ...]
    span: Span = span_field()
    trivia: Trivia = _trivia()


@record(frozen=True, slots=True)
class Assert:
    """`assert test, message`; `text` is the test as its user wrote it.

    `message`: text, value, text, …, text, or () for no message. Where it has values, the test is a constant False:
    the statement stands in an `if`, since Python evaluates the message of a failed assertion only.
    """

    test: Expr
    message: tuple[str, ...]
    text: str = field(default="", compare=False)
    span: Span = span_field()
    trivia: Trivia = _trivia()
    values: tuple[Expr, ...] = ()
    fields: tuple[Field, ...] = ()


@record(frozen=True, slots=True)
class Comment:
    """Comments that end a block, `pass`, and the definition of a part of an `array` that may be None."""

    span: Span = span_field()
    trivia: Trivia = _trivia()
    array: str = ""


Stmt = (
    Assign
    | DeclareLocal
    | StructuredBinding
    | Alloc
    | Store
    | If
    | For
    | While
    | Break
    | Continue
    | Return
    | ExprStmt
    | Sync
    | EachPack
    | EachThread
    | Delete
    | Print
    | Assert
    | Comment
)
Block = tuple[Stmt, ...]
