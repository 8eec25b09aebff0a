"""The names in the body of a kernel or device function: parameters, locals, arrays, and names from around it.

In: a function, its parameters by kind, and the arrays that it declares. Out: a `Scope`, which says what a name in the
body is; diagnostics for unknown names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import libcst as cst

from py2cu import builtins, ir
from py2cu.analysis.effects import Footprint, commute, footprint
from py2cu.builtins.public import CUDA
from py2cu.diagnostics import Reporter
from py2cu.frontend.bodies.functions.interface import ClosureCapture, DeviceFunctions
from py2cu.frontend.bodies.hoisting import Hoisted
from py2cu.frontend.bodies.sequences.ranges import Range
from py2cu.frontend.bodies.tuples.forms import Form, count_numbers, flatten, shape
from py2cu.frontend.bodies.views import ViewNames
from py2cu.frontend.declarations.array_declarations import ArrayDeclarationReader
from py2cu.frontend.declarations.named_constants import named_constant
from py2cu.frontend.names.ambiguity import hint_for_value, parameter_hint, report_ambiguous_name
from py2cu.frontend.names.classes import report_class, report_flag
from py2cu.frontend.names.constants import Constants, Real, check_64_bits
from py2cu.frontend.names.environment import Environment
from py2cu.ir.abi.parameters import NegativeIndex
from py2cu.ir.names import numbered
from py2cu.ir.visit import names_in
from py2cu.source import Span
from py2cu.suggestions import did_you_mean

LAUNCH_OBJECTS = ("blockIdx", "threadIdx", "blockDim", "gridDim")
_PYTHON = tuple(name.removeprefix("builtins.") for name in builtins.names() if name.startswith("builtins."))
_BY_PLAIN_NAME = {name.lower(): name for name in LAUNCH_OBJECTS}


def launch_object(name: str) -> str | None:
    """The CUDA name of a launch object in any case, with or without underscore: `block_idx` is `blockIdx`."""
    return _BY_PLAIN_NAME.get(name.replace("_", "").lower())


@dataclass(frozen=True, slots=True)
class Scope:
    """The names that a function's statements and expressions may use.

    `launch` maps parameters to launch objects, `arrays` maps arrays to their types, and `values` are the scalars:
    parameters, element indices and locals.
    """

    reporter: Reporter
    environment: Environment
    span_of: Callable[[cst.CSTNode], Span]
    launch: dict[str, str]
    arrays: dict[str, ir.ArrayType]
    array_decls: dict[str, ir.ArrayDecl]  # that the function declares; tables join them where they are read
    values: frozenset[str]
    indices: frozenset[str]
    dims: frozenset[str]
    once: frozenset[str]  # locals that are assigned in one place
    named: frozenset[str]  # locals that `:=` assigns
    functions: DeviceFunctions
    returns: bool  # True for a device function
    negative_indices: list[NegativeIndex] = field(default_factory=list, kw_only=True)  # constants
    elided: list[ir.Elided] = field(default_factory=list, kw_only=True)  # statements that have no code
    starts: dict[str, ir.Expr] = field(default_factory=dict, kw_only=True)  # of views: where they begin
    aliases: set[str] = field(default_factory=set, kw_only=True)  # locals that are launch objects
    barriers: frozenset[str] = field(default=frozenset(), kw_only=True)  # parameters that are the block's barrier
    grids: set[str] = field(default_factory=set, kw_only=True)  # names of Numba's group of all threads
    optional_parameters: frozenset[str] = field(default=frozenset(), kw_only=True)  # parameters that may be None
    broken: set[str]  # parameters and locals that depend on refused code: errors in their uses are not reported
    views: ViewNames = field(default_factory=ViewNames, kw_only=True)
    ranges: dict[str, Range] = field(default_factory=dict, kw_only=True)  # that variables are
    temporaries: set[str] = field(default_factory=set, kw_only=True)  # locals that the source does not have
    hoisted: Hoisted = field(default_factory=Hoisted, kw_only=True)
    declarations: ArrayDeclarationReader = field(kw_only=True)
    bindings: dict[str, ir.Expr] = field(default_factory=dict, kw_only=True)  # by comprehensions; tuple parameters
    tuples: dict[str, Form] = field(default_factory=dict, kw_only=True)  # the forms of locals that are tuples
    counters: dict[str, range] = field(default_factory=dict, kw_only=True)  # the numbers of loops around, if constant
    returned: list[Form] = field(default_factory=list, kw_only=True)  # the forms of a device function's results

    def launch_object(self, node: cst.BaseExpression) -> str | None:
        """The launch object that `node` names: a leading parameter, or one imported from py2cu."""
        if isinstance(node, cst.Name) and node.value in self.launch:
            return self.launch[node.value]
        if self.is_local(node):
            return None
        library, _, name = (self.environment.qualify(node) or "").rpartition(".")
        return name if library in CUDA and name in LAUNCH_OBJECTS else None

    def is_local(self, node: cst.BaseExpression) -> bool:
        """True for a scalar or an array of the function, and for a variable of a comprehension."""
        name = node.value if isinstance(node, cst.Name) else ""
        return name in self.values or name in self.arrays or name in self.bindings or name in self.views.views

    def fresh(self, name: str) -> str:
        """A new name for a temporary, which no local, dimension, table or other temporary has."""
        fresh = next(each for each in numbered(name) if each not in self.temporaries and self._is_free(each))
        self.temporaries.add(fresh)
        return fresh

    def save(self, value: ir.Expr, name: str = "value") -> ir.Name:
        """A new local that takes `value` before the statement that is read."""
        fresh = self.fresh(name)
        self.hoist((self.assign(fresh, value, value.span),), value.span)
        return ir.Name(fresh, value.span)

    def computed_once(self, value: ir.Expr) -> ir.Expr:
        """`value`, or a local that takes it if its computation acts: what comes back may be dropped and repeated."""
        return self.save(value) if self.footprint((), value).acts else value

    def hoist(self, block: ir.Block, span: Span) -> None:
        """Run `block`, which computes the expression at `span`, before the statement that is read.

        Refused where Python may not come to the expression, or where it first computes what `block` changes.
        """
        quote, moved, saved = self.reporter.file.quote, self.footprint(block), list[ir.Stmt]()
        barrier = self.hoisted.condition if moved.stores or moved.reports else self.hoisted.barrier
        if block and barrier:
            what = f"this needs a local before the statement, but {barrier}"
            self.reporter.error("P103", what, span, f"assign it on a line of its own: `t = {quote(span)}`")
            return
        for operand in self.hoisted.before(block):
            first, value = self.footprint((), operand.value), operand.value
            if commute(first, moved):
                continue
            if operand.is_held:  # rule: hoisted-held
                moved |= first
                operand.value = self._saved(value, saved)
                continue
            first_text = quote(value.span)
            what = f"this is computed before the statement, and may change `{first_text}`, which Python reads first"
            hint = f"assign that in a statement before this one: `value = {first_text}`"
            self.reporter.error("P409", what, span, hint)
        self.hoisted.statements += (*saved, *block)

    def _saved(self, value: ir.Expr, saved: list[ir.Stmt]) -> ir.Expr:
        """A local for each number of `value`, assigned in `saved`."""
        if isinstance(value, ir.Tuple):
            return replace(value, items=tuple(self._saved(item, saved) for item in value.items))
        name = self.fresh("value")
        saved.append(self.assign(name, value, value.span))
        return ir.Name(name, value.span)

    def to_save(self, values: Sequence[ir.Expr], is_saved: Callable[[ir.Expr], bool]) -> list[int]:
        """The places of the values to save: those that `is_saved` names, and earlier ones that these may change."""
        moved, places = Footprint(), list[int]()
        for place in reversed(range(len(values))):
            effect = self.footprint((), values[place])
            if is_saved(values[place]) or not commute(effect, moved):
                moved |= effect
                places.insert(0, place)
        return places

    def footprint(self, block: ir.Block, *values: ir.Expr) -> Footprint:
        """What statements and expressions of the function read, write and do."""
        return footprint(block, values, self.functions.finished(), self.memory)

    def memory(self, name: str) -> str:
        """What holds the elements of an array: the parameters of a device function may all be one array.

        A local holds its own number.
        """
        if name not in self.arrays and name not in self.views.views:
            return name
        base = self.base_array(name)
        return "" if self.returns and base not in self.array_decls else base

    def assign(self, name: str, value: ir.Expr, span: Span, augmented: bool = False) -> ir.Assign:
        """`name = value`; a tuple gives the name its form."""
        form, known = self.form(value), self.tuples.get(name)
        if form is not None:
            if known not in (None, form) and count_numbers(known) == count_numbers(form):
                what = f"`{name}` is a tuple of another form elsewhere in this function"
                self.reporter.error("P312", what, span, "use another name")
            self.tuples[name] = form
        return ir.Assign(name, flatten(value), span, augmented=augmented)

    def form(self, value: ir.Expr) -> Form:
        """The form of a value: None of a number, and of the result of a function that is not read yet."""
        match value:
            case ir.Tuple(items=items):
                return tuple(map(self.form, items))
            case ir.Name(id=name):
                return self.tuples.get(name)
            case ir.DeviceCall(function=key):
                return self.functions.form(key)
            case ir.Load(array=array, indices=indices) if self.is_row(array, len(indices)):
                return (None,) * self.array_decls[array].vector_width
            case _:
                return None

    def variable(self, name: str, span: Span) -> ir.Expr:
        """The value of a local, a parameter or a variable of a comprehension; a tuple as its numbers."""
        value = self.bindings.get(name, ir.Name(name, span))
        form = None if isinstance(value, ir.Tuple) else self.form(value)
        return value if form is None else shape(form, lambda at: ir.TupleItem(value, at, span))

    @contextmanager
    def counting(self, counter: str, rounds: range | None) -> Iterator[None]:
        """The rounds of a loop whose counter has these numbers; None where they are not constant."""
        if rounds:
            self.counters[counter] = rounds
        yield
        self.counters.pop(counter, None)

    def form_of(self, node: cst.BaseExpression) -> Form:
        """The form of a name or of an item of one, by the text alone; None for anything else."""
        match node:
            case cst.Name(value=name) if name in self.bindings:
                return self.form(self.bindings[name])
            case cst.Name(value=name):
                return self.tuples.get(name)
            case cst.Subscript(value=base, slice=[cst.SubscriptElement(slice=cst.Index(value=index, star=None))]):
                form = self.form_of(base)
                at = self.environment.constant(index) if form else None
                return None if not form else form[at if isinstance(at, int) and -len(form) <= at < len(form) else 0]
            case cst.Subscript(value=base, slice=[cst.SubscriptElement(slice=cst.Slice() as part)]):
                form, bounds = self.form_of(base), self.constant_bounds(part)
                return form if form is None or bounds is None else form[bounds]  # rule: tuple-part
            case _:
                return None

    def constant_bounds(self, part: cst.Slice) -> slice | None:
        """The bounds of a slice, if they are constants; None otherwise."""
        bounds: list[int | None] = []
        for node in (part.lower, part.upper, part.step):
            bound = None if node is None or self.is_local(node) else self.environment.constant(node)
            if node is not None and not isinstance(bound, int):
                return None
            bounds.append(bound if isinstance(bound, int) else None)
        return None if bounds[2] == 0 else slice(*bounds)

    def _is_free(self, name: str) -> bool:
        node = cst.Name(name)
        if name in self.environment.imports:
            return False
        extents = (extent for array in self.arrays.values() for dim in array.dims for extent in names_in(dim))
        return not self.is_local(node) and name not in extents and self.table(node) is None  # rule: hidden-table

    def is_number(self, node: cst.BaseExpression) -> bool:
        """True for a local, a scalar parameter, a complex constant, and for expressions that are no names."""
        if isinstance(node, cst.Name):
            constant = self.environment.constant(node)
            return node.value in self.values or (isinstance(constant, complex) and not self.is_local(node))
        return not isinstance(node, cst.Attribute) or self.environment.qualify(node) is None

    def declares(self, target: cst.Name) -> bool:
        """True if the assignment to `target` declares an array."""
        array = self.array_decls.get(target.value)
        return array is not None and array.span == self.span_of(target)

    def is_row_view(self, name: str) -> bool:
        """True for a view in rows: `x4[i]` is a vector."""
        return name in self.array_decls and self.array_decls[name].has_rows

    def is_row(self, name: str, indices: int) -> bool:
        """True for a row of a view in rows, under so many indices."""
        return self.is_row_view(name) and indices == len(self.arrays[name].dims) - 1

    def open_length(self, name: str) -> ir.Name | None:
        """The length of the rows of a view, `W`, where it differs with the dtype; None for anything else."""
        length = self.arrays[name].dims[-1] if self.is_row_view(name) else None
        return length if isinstance(length, ir.Name) else None

    def refuses_open_row(self, name: str, node: cst.CSTNode, hint: str) -> bool:
        """True, after a diagnostic, for a view in rows whose length differs with the dtype."""
        if length := self.open_length(name):
            what = f"a row of `{name}` has `{length.id}` elements, which differ with the dtype"
            self.error("P410", what, node, hint)
        return length is not None

    @contextmanager
    def block(self) -> Iterator[None]:
        """Lists, views and ranges that are defined here end with the block."""
        outer = {*self.arrays, *self.ranges}
        with self.views.block():
            yield
        self.views.ended.update(self.ranges.keys() - outer)
        for names in (self.arrays, self.ranges):
            for name in names.keys() - outer:
                names.pop(name)

    def base_array(self, name: str) -> str:
        """The array that a view is part of; `name` itself for any other array."""
        if name in self.views.views:
            name = self.views.views[name].array
        base = self.array_decls[name].base if name in self.array_decls else ""
        return self.base_array(base) if base else name  # rule: view-base

    def takes_number(self, target: cst.Name) -> bool:
        """True if a number may be assigned to `target`; False after a diagnostic."""
        if self.views.is_view(target.value):
            kind = self.views.kind(target.value)
            what = f"`{target.value}` is {kind} elsewhere in this function, and a number here"
            self.error("P203", what, target, "use another name")
            return False
        if self.is_assignable(target):
            self.views.numbers.add(target.value)
            return True
        return False

    def is_assignable(self, target: cst.Name) -> bool:
        """True if `target` may be assigned to; False, after a diagnostic, for arrays, launch objects and indices."""
        name = target.value
        if self.views.is_list(name):
            return True
        if name in self.array_decls:
            what = f"the array `{name}` is declared once, and cannot be assigned to"
            self.error("P203", what, target, f"`{name}[…] = …` stores an element")
        elif name in self.arrays or name in self.launch:
            self.error("P203", f"the parameter `{name}` cannot be assigned to", target, "use another name")
        elif name in self.indices:
            self.error("P203", f"the element index `{name}` cannot be assigned to", target, "use another name")
        else:
            return True
        return False

    def captured(self, names: Sequence[str]) -> ClosureCapture:
        """The capture of these names in this scope."""
        return ClosureCapture(
            {name: self.arrays[name] for name in names if name in self.arrays},
            {
                name: self.form_of(cst.Name(name))
                for name in names
                if name in self.bindings or (name in self.values and name not in self.grids)
            },
            {name: self.launch[name] for name in names if name in self.launch},
            self.barriers.intersection(names),
            frozenset(self.grids.intersection(names)),
            frozenset(self.broken.intersection(names)),
        )

    def table(self, node: cst.BaseExpression) -> Constants | None:
        """The tuple of constants that `node` names, around the function or in another file."""
        if not isinstance(node, cst.Name) or self.is_local(node):
            return None
        around = self.environment.constants(node)
        table = self.functions.constant(node) if around is None and node.value in self.environment.imports else around
        return table if isinstance(table, tuple) else None

    def constant(self, node: cst.BaseExpression, value: Real) -> ir.Constant:
        """A number from around the function, with the name by which `node` reads it."""
        span = self.span_of(node)
        named = named_constant(node, value, self.environment, self.span_of)
        return ir.Constant(check_64_bits(value, self.reporter, span), span, named=named)

    def reports_ambiguous(self, node: cst.CSTNode) -> bool:
        """Report the first ambiguous name in `node`; False if there is none."""
        name = self.environment.first_ambiguous(node)
        hint = None if name is None else hint_for_value(name.value, self.environment)
        return report_ambiguous_name(node, self.environment, self.reporter, self.span_of, hint)

    def reports_class(self, node: cst.BaseExpression) -> bool:
        """Report a class, or the attribute of one that is no number; False for any other expression."""
        return report_class(node, self.environment, self.reporter, self.span_of)

    def report_flag(self, sign: cst.CSTNode, *operands: cst.BaseExpression) -> None:
        report_flag(sign, operands, self.environment, self.reporter, self.span_of)

    def elide(self, statement: cst.CSTNode, why: ir.Elision) -> None:
        """Note a statement that has no code in the kernel."""
        self.elided.append(ir.Elided(self.span_of(statement), why))

    def error(self, code: str, message: str, node: cst.CSTNode, hint: str) -> None:
        self.reporter.error(code, message, self.span_of(node), hint)

    def is_unknown(self, node: cst.BaseExpression) -> bool:
        """True for an undefined name."""
        if not isinstance(node, cst.Name) or self.launch_object(node) is not None:
            return False
        known = (
            self.values, self.arrays, self.barriers, self.broken, self.environment.definitions,
            self.environment.functions, self.environment.classes,
        )  # fmt: skip
        return not any(node.value in names for names in known) and self.environment.qualify(node) is None

    def unknown_name(self, node: cst.Name) -> None:
        """Report an undefined name, and suggest the nearest defined one."""
        if self.reports_ambiguous(node) or self.reports_class(node):
            return
        if (function := self.environment.enclosing_parameters.get(node.value)) is not None:
            what = f"`{node.value}` is a parameter of the enclosing function `{function}`, known only at run time"
            if node.value in self.environment.live:
                what = f"`{node.value}` is neither a number nor a tuple of numbers"
            self.error("P202", what, node, parameter_hint(node.value, self.environment))
            return
        known = [*self.values, *self.arrays, *self.launch, *self.environment.names, *_PYTHON]
        hint = did_you_mean(node.value, known, "assign to it first, import it, or make it a parameter")
        if node.value in self.dims:
            hint = f"it is a dimension: add a parameter `{node.value}: int`, or read it from an array's `.shape`"
        self.error("P201", f"unknown name `{node.value}`", node, hint)
