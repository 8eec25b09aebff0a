"""Lists → local arrays, element by element.

acc = [0.0] * 4                         for k in range(4): acc[k] = 0.0
v = [a, b]                          →   v[0] = a; v[1] = b
m = [[x[r, k] for k in range(3)]        for r in range(2):
     for r in range(2)]                     for k in range(3): m[r, k] = x[r, k]

In: an assignment of lists to names. Out: the statements that fill the array; `infer_locals` finds the type of its
elements. A length is constant. A name is a list until its block ends. It may take another list of that length where no
part of the old one has a name, as in `row = m[0]`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import libcst as cst

from py2cu import ir
from py2cu.builtins.casts import INDEX
from py2cu.dtypes import F64
from py2cu.frontend.bodies.lists.copies import array_of_list, copied_list, copy_elements, exchange_elements, moved_list
from py2cu.frontend.bodies.lists.displays import is_list, is_list_call
from py2cu.frontend.bodies.loops import as_count
from py2cu.frontend.bodies.scope import Scope
from py2cu.frontend.bodies.sequences import kinds
from py2cu.frontend.bodies.sequences.comprehensions import binding, read_first
from py2cu.frontend.bodies.sequences.kinds import Display
from py2cu.frontend.bodies.sequences.ranges import ONE, Range
from py2cu.frontend.bodies.sequences.reader import SequenceReader
from py2cu.frontend.bodies.tables import MAX_NUMBERS, Read, constant_value, read_table
from py2cu.frontend.bodies.targets import TargetReader
from py2cu.frontend.bodies.views import ZERO, View, plus, times
from py2cu.frontend.names.syntax import is_named, nodes_in, source_text
from py2cu.ir.extents import folded
from py2cu.ir.operators import OPERATORS, Family
from py2cu.ir.visit import is_duplicable
from py2cu.source import Span

Indices = tuple[ir.Expr, ...]
Filled = tuple[Indices, ir.Block]  # the extents of a list, and the statements that store its elements


@dataclass(frozen=True, slots=True)
class ListReader:
    """Reads one assignment of lists; its statements have the place of the assignment.

    `following` are the assignment and the statements behind it in its block.
    """

    scope: Scope
    targets: TargetReader
    read: Read
    span: Span
    following: Sequence[cst.BaseStatement]

    def read_assignment(self, statement: cst.Assign) -> ir.Block | None:
        """The statements of an assignment of lists, none after a diagnostic; None where it assigns anything else."""
        match statement.targets[0].target, statement.value:
            case _ if len(statement.targets) > 1:
                return None
            case cst.Name() as target, value if is_list(value):
                return self.assign(target, value)
            case cst.Name() as target, value if (source := copied_list(value, self.scope)) is not None:
                return self._copy(target, source)
            case cst.Name() as target, value if is_list_call(value, self.scope):
                return self.assign(target, value)
            case cst.Name(value=name) as target, value if (
                array_of_list(name, self.scope) is not None
                and (source := moved_list(value, self.following, self.scope)) is not None
            ):
                return self._copy(target, source)
            case cst.Tuple(elements=targets), cst.Tuple(elements=values) if len(targets) == len(values):
                return self._assign_several([(a.value, b.value) for a, b in zip(targets, values, strict=True)])
            case _:
                return None

    def _copy(self, target: cst.Name, source: str) -> ir.Block:
        known, extents = self.scope.views.named_list(target.value), self.scope.arrays[source].dims
        if not self.targets.may_be_list(target, known):
            return ()
        if known is None:
            array = self._new_array(target)
            self._name(array, target, extents)
            return (ir.Alloc(array, self.span), *copy_elements(array, source, self.scope, self.span))
        if known.array == source or not self._fits(known.array, extents, target):
            return ()
        return copy_elements(known.array, source, self.scope, self.span)

    def _assign_several(self, pairs: Sequence[tuple[cst.BaseExpression, cst.BaseExpression]]) -> ir.Block | None:
        """`a, b = b, a`, also with new lists: `a, b = b, [0.0] * n`, where the new one takes the array that is left.

        None if a value is no list, if a new list reads one of the targets, or if a list would get two names.
        """
        names = {target.value: target for target, _ in pairs if isinstance(target, cst.Name)}
        new = {name: value for name, (_, value) in zip(names, pairs, strict=False) if is_list(value)}
        moved = {name: v.value for name, (_, v) in zip(names, pairs, strict=False) if isinstance(v, cst.Name)}
        lists = {*moved, *moved.values()}
        arrays = {name: array for name in lists if (array := array_of_list(name, self.scope)) is not None}
        read = {node.value for value in new.values() for node in nodes_in(value) if isinstance(node, cst.Name)}
        is_complete = len(names) == len(pairs) == len(new) + len(moved) and arrays.keys() == lists
        has_one_name_each = len({*moved.values()}) == len(moved) and names.keys() >= lists
        if not is_complete or not has_one_name_each or not read.isdisjoint(names):
            return None
        for name, source in moved.items():
            target, extents = self.scope.views.views[name], self.scope.arrays[arrays[source]].dims
            if not self.targets.may_be_list(names[name], target) or not self._fits(target.array, extents, names[name]):
                return ()
        sources = {arrays[name]: arrays[source] for name, source in moved.items()}
        exchange = exchange_elements(sources, self.scope, self.span) if sources else ()
        return (*exchange, *(stmt for name, value in new.items() for stmt in self.assign(names[name], value)))

    def assign(self, target: cst.Name, value: cst.BaseExpression) -> ir.Block:
        """The statements that make `target` the list `value`; none after a diagnostic."""
        known = self.scope.views.named_list(target.value)
        if not self.targets.may_be_list(target, known):
            return ()
        if known is None:
            return self._declare(target, value)
        reads_old = any(is_named(node, target.value) for node in nodes_in(value))
        return (self._exchange if reads_old else self._refill)(known.array, target, value)

    def _filled(self, array: str, value: cst.BaseExpression) -> Filled | None:
        return Filler(self.scope, self.read, self.span, array).fill(value, ())

    def _declare(self, target: cst.Name, value: cst.BaseExpression) -> ir.Block:
        """A new array, named like the list where no earlier block has a list of that name."""
        array = self._new_array(target)
        extents, block = self._filled(array, value) or ((ir.constant_extent(1),), ())
        self.scope.declarations.check_size(extents, F64, ir.Space.LOCAL, value)
        self._name(array, target, extents)
        return (ir.Alloc(array, self.span), *block)

    def _new_array(self, target: cst.Name) -> str:
        return self.scope.fresh(target.value) if target.value in self.scope.array_decls else target.value

    def _name(self, array: str, target: cst.Name, extents: Indices) -> None:
        """Declare `array`, the list `target`."""
        type_ = ir.ArrayType(F64, tuple(map(ir.as_extent, extents)), weak=True)
        span = self.scope.span_of(target)
        self.scope.array_decls[array] = ir.ArrayDecl(array, type_, ir.Space.LOCAL, span=span, is_list=True)
        self.scope.arrays[array] = type_
        self.scope.views.lists[array] = target.value
        self.scope.views.views[target.value] = View(array, len(extents))

    def _refill(self, array: str, target: cst.Name, value: cst.BaseExpression) -> ir.Block:
        """Another list for the name, in the same array."""
        filled = self._filled(array, value)
        return filled[1] if filled is not None and self._fits(array, filled[0], target) else ()

    def _exchange(self, array: str, target: cst.Name, value: cst.BaseExpression) -> ir.Block:
        """`v = [v[1], v[0]]`: the new list is made before the old one goes."""
        new = self.scope.fresh(f"new_{target.value}")
        filled = self._filled(new, value)
        if filled is None or not self._fits(array, filled[0], target):
            return ()
        self.scope.array_decls[new] = replace(self.scope.array_decls[array], name=new)
        return (ir.Alloc(new, self.span), *filled[1], *copy_elements(array, new, self.scope, self.span))

    def _fits(self, array: str, extents: Indices, target: cst.Name) -> bool:
        """True for the extents of the name's first list; False after a diagnostic."""
        if self.scope.arrays[array].dims == extents:
            return True
        what = f"`{target.value}` is a list of another length elsewhere in this function"
        self.scope.error("P408", what, target, "use another name")
        return False


@dataclass(frozen=True, slots=True)
class Filler:
    """Reads the stores that fill one array."""

    scope: Scope
    read: Read
    span: Span
    array: str

    def fill(self, node: cst.BaseExpression, place: Indices) -> Filled | None:
        """The extents of the list `node`, and the stores of its elements under the indices `place`."""
        match node:
            case cst.List(elements=elements):
                return self._display(node, [element.value for element in elements], place)
            case cst.ListComp(elt=elt, for_in=head):
                return self._comprehension(head, elt, place)
            case cst.Call(func=cst.Name() as function, args=[cst.Arg(value=value)]):
                return self.items(function, value, place)
            case cst.IfExp(test=test, body=body, orelse=orelse):
                return self._chosen(test, body, orelse, place)
            case cst.BinaryOperation(left=cst.List() as unit, right=count):
                return self._repeated(unit, count, place)
            case cst.BinaryOperation(left=count, right=cst.List() as unit):
                return self._repeated(unit, count, place)
            case _:
                raise AssertionError(node)

    def _element(self, node: cst.BaseExpression, place: Indices) -> Filled | None:
        """The element at `place`: a number, or an inner list."""
        if is_list(node):
            return self.fill(node, place)
        if isinstance(node, cst.Tuple):
            row = f"[{', '.join(source_text(item.value) for item in node.elements)}]"
            self.scope.error("P103", "a list of tuples is not supported in a kernel", node, f"write a list: `{row}`")
            return None
        value = self.read(node)
        return (), (*self.scope.hoisted.take(), ir.Store(self.array, place, value, self.span))

    def _chosen(
        self, test: cst.BaseExpression, body: cst.BaseExpression, orelse: cst.BaseExpression, place: Indices
    ) -> Filled | None:
        condition, before = self.read(test), self.scope.hoisted.take()
        chosen, other = self.fill(body, place), self.fill(orelse, place)
        if chosen is None or other is None:
            return None
        if chosen[0] != other[0]:
            self.scope.error("P408", "these two lists differ in length", orelse, "make both as long as the longer one")
            return None
        return chosen[0], (*before, ir.If(condition, chosen[1], other[1], self.span))

    def items(self, function: cst.Name, value: cst.BaseExpression, place: Indices) -> Filled | None:
        """`list(TABLE)`, `list(range(4))`, `list(x[i] for …)`: the items of `value`.

        Other than of constants and generators, `[list for list in value]`: the name of the function is the variable.
        """
        row = read_table(value, self.scope)
        if isinstance(value, cst.GeneratorExp):
            return self._comprehension(value.for_in, value.elt, place)
        if row is None or len(row) > MAX_NUMBERS or any(isinstance(item, tuple) for item in row):
            return self._comprehension(cst.CompFor(function, value), function, place)
        stores = (
            ir.Store(self.array, (*place, self._constant(at)), constant_value(item, value, self.scope), self.span)
            for at, item in enumerate(row)
        )
        return (self._constant(len(row)),), tuple(stores)

    # --- displays ---

    def _display(self, node: cst.List, elements: Sequence[cst.BaseExpression], place: Indices) -> Filled | None:
        if not self._has_items(node):
            return None
        rows = [self._element(each, (*place, self._constant(at))) for at, each in enumerate(elements)]
        known = [row for row in rows if row is not None]
        if len(known) < len(rows):
            return None
        if len({extents for extents, _ in known}) > 1:
            self.scope.error("P408", "the rows of this list differ in length", node, "make all as long as the longest")
            return None
        return (self._constant(len(known)), *known[0][0]), tuple(stmt for _, block in known for stmt in block)

    def _repeated(self, unit: cst.List, count: cst.BaseExpression, place: Indices) -> Filled | None:
        """`[a, b] * 3`: the values are computed once."""
        nodes = [element.value for element in unit.elements]
        if not self._has_items(unit):
            return None
        for each in filter(is_list, nodes):
            hint = f"make one for each: `[{source_text(each)} for _ in range({source_text(count)})]`"
            self.scope.error("P103", "all rows of this list would be one and the same list", unit, hint)
            return None
        values = [value if is_duplicable(value) else self.scope.save(value) for value in map(self.read, nodes)]
        extent = self._extent(self.read(count), count)
        if extent is None:
            return None
        before, counter = self.scope.hoisted.take(), ir.Name(self.scope.fresh("k"), self.span)
        first = times(counter, self._constant(len(values)))
        stores = (
            ir.Store(self.array, (*place, plus(first, self._constant(at))), value, self.span)
            for at, value in enumerate(values)
        )
        loop = ir.For(counter.id, ZERO, extent, ONE, tuple(stores), self.span)
        return (times(extent, self._constant(len(values))),), (*before, loop)

    def _has_items(self, node: cst.List) -> bool:
        """True for a display whose items can be counted; False after a diagnostic."""
        if any(isinstance(element, cst.StarredElement) for element in node.elements):
            self.scope.error("P103", "`*` is not supported in a list", node, "write its items out")
            return False
        if not node.elements:
            self._refuse_empty(node)
        return bool(node.elements)

    def _refuse_empty(self, node: cst.BaseExpression) -> None:
        hint = "make it as long as it gets: `acc = [0.0] * 8`, and count its elements in an integer"
        self.scope.error("P408", "an empty list stays empty in a kernel", node, hint)

    # --- comprehensions ---

    def _comprehension(
        self, head: cst.CompFor, elt: cst.BaseExpression, place: Indices, index: ir.Expr = ZERO, count: ir.Expr = ONE
    ) -> Filled | None:
        """A loop of a comprehension; the loops around it count `index` below `count`."""
        reader = SequenceReader(self.scope, self.read, self.scope.span_of(head.iter))
        sequence = self._sequence(head, reader)
        extent = None if sequence is None else self._extent(sequence.rounds, head.iter)
        if sequence is None or extent is None:
            return None

        def inside(at: ir.Expr) -> Filled | None:
            inner_index, inner_count = plus(times(index, extent), at), times(count, extent)
            item = sequence.item(at)
            with binding(head.target, item, self.scope):
                if head.inner_for_in is not None:
                    return self._comprehension(head.inner_for_in, elt, place, inner_index, inner_count)
                element = self._element(elt, (*place, inner_index))
            return None if element is None else ((inner_count, *element[0]), read_first(item, element[1], self.scope))

        return self._rounds(sequence, extent, head, inside)

    def _sequence(self, head: cst.CompFor, reader: SequenceReader) -> kinds.Sequence | None:
        """What a loop of a comprehension runs over; None after a diagnostic."""
        for test in head.ifs:
            hint = "keep all elements, and test where they are used"
            self.scope.error("P104", "with an `if`, the length of this list is not constant", test, hint)
            return None
        sequence = reader.read_iterable(head.iter, "a comprehension")
        match None if sequence is None else as_count(sequence):
            case Range() as numbers:
                return numbers
            case _:
                return sequence

    def _rounds(
        self, sequence: kinds.Sequence, extent: ir.Expr, head: cst.CompFor, inside: Callable[[ir.Expr], Filled | None]
    ) -> Filled | None:
        """A loop over `sequence`; the rounds over values that the text lists are written out."""
        before = self.scope.hoisted.take()
        if isinstance(sequence, Display):
            rounds = [inside(self._constant(at)) for at in range(len(sequence.items))]
            known = [each for each in rounds if each is not None]
            block = tuple(stmt for _, stores in known for stmt in stores)
            if not rounds:
                self._refuse_empty(head.iter)
            return (known[0][0], (*before, *block)) if rounds and len(known) == len(rounds) else None
        match sequence, head.target:
            case Range(ir.Constant(value=0), _, ir.Constant(value=1)), cst.Name(value=name):
                counter = ir.Name(self.scope.fresh(name), self.span)
            case _:
                counter = ir.Name(self.scope.fresh("k"), self.span)
        with self.scope.hoisted.inner():
            filled = inside(counter)
        if filled is None:
            return None
        return filled[0], (*before, ir.For(counter.id, ZERO, extent, ONE, filled[1], self.span))

    # --- extents ---

    def _extent(self, value: ir.Expr, node: cst.BaseExpression) -> ir.Expr | None:
        """How many items there are, of constants and template arguments; None after a diagnostic."""
        extent = self._fixed(value)
        if extent is None:
            hint = "take the greatest length that it may have, and `assert` that no larger one is needed"
            self.scope.error("P408", "the length of a list must be constant", node, hint)
        return extent

    def _fixed(self, value: ir.Expr) -> ir.Expr | None:
        match value:
            case ir.Constant(value=int(number)):
                return self._constant(number)
            case ir.Call(function=function, args=(number,)) if function == INDEX:
                return self._fixed(number)
            case ir.Extent(array=array, axis=axis):
                return self._fixed(self.scope.arrays[array].dims[axis])
            case ir.Name(id=name) if name in self.scope.declarations.extents.constexprs:
                return replace(value, type=ir.PY_INT)
            case ir.Call(function="builtins.min", args=(one, other)):
                return self._fixed(one) if self._fixed(one) == self._fixed(other) else None  # rule: zip-of-lists
            case ir.Binary(op=op, left=left, right=right) if OPERATORS[op].in_extents:
                return self._combined(op, self._fixed(left), self._fixed(right))
            case _:
                return None

    def _combined(self, op: str, left: ir.Expr | None, right: ir.Expr | None) -> ir.Expr | None:
        match left, right:
            case (None, _) | (_, None):
                return None
            case _, ir.Constant(value=0) if OPERATORS[op].family is Family.QUOTIENT:
                return None
            case _:
                assert left is not None
                assert right is not None
                return folded(op, left, right, self.span)

    def _constant(self, value: int) -> ir.Constant:
        return ir.Constant(value, self.span, ir.PY_INT)
