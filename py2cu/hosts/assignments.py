"""Assignments of host functions: names, unpacked shapes and lists, augmented ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import libcst as cst

from py2cu.frontend.names.syntax import source_text
from py2cu.hosts.arithmetic import binary
from py2cu.hosts.expressions import ExpressionReader
from py2cu.hosts.tree import Line
from py2cu.hosts.values import Kind, Local, Value, identifier, local_of
from py2cu.ir.names import underscored_name


@dataclass(slots=True)
class AssignmentReader:
    """Reads assignments, and records the kind and the least value of each local."""

    expressions: ExpressionReader
    once: frozenset[str]  # the locals with a single assignment, outside of loops
    names: dict[str, str]  # in C++, by the name in Python
    taken: set[str]
    ranks: Mapping[str, int]  # of the parameters whose annotation says how many dimensions they have, by name in C++
    last_items: Mapping[str, int]  # by list, the largest constant index into it

    @property
    def locals(self) -> dict[str, Local]:
        return self.expressions.locals

    def line(self, text: str, origin: int) -> Line:
        return Line(text, origin, reads=frozenset(self.expressions.read_names))

    def assign(self, target: cst.BaseAssignTargetExpression, node: cst.BaseExpression, origin: int) -> Iterator[Line]:
        reader = self.expressions
        match target:
            case cst.Name(value=name):
                yield self.bind(name, target, reader.read(node), origin)
                yield from self.check_items(name, origin)
            case cst.Tuple(elements=elements) | cst.List(elements=elements) if all(
                isinstance(element.value, cst.Name) for element in elements
            ):
                names = [element.value for element in elements if isinstance(element.value, cst.Name)]
                yield from self.unpack(names, node, origin)
            case cst.Subscript():
                raise reader.refused(
                    "P802", "host functions do not write to elements", target, "let a kernel write them"
                )
            case _:
                raise reader.refused("P801", "host functions assign to names", target, "write `name = …`")

    def bind(self, name: str, node: cst.CSTNode, value: Value, origin: int) -> Line:
        """The line `name = value`; records the kind of the local."""
        reader = self.expressions
        if value.kind is Kind.NONE:
            raise reader.refused("P802", "this gives no value to assign", node, "call it on a line of its own")
        known = self.locals.get(name)
        if known is not None and known.kind is not value.kind and known.kind is not Kind.NONE:
            what = f"`{name}` is {known.kind.value} before, and {value.kind.value} here"
            raise reader.refused("P306", what, node, "use another name: a local in C++ has one type")
        text = self.names.get(name) or self.fresh(identifier(name))
        self.names[name] = text
        if value.kind is Kind.SIZES and value.text.endswith(".sizes()"):
            value = Value(Kind.SIZES, f"{value.text}.vec()", low=0, is_size=True)
        elif value.kind is Kind.SIZES and value.items is not None:
            naturals, sizes = (all(getattr(i, f) for i in value.items) for f in ("is_natural", "is_size"))
            value = Value(Kind.SIZES, value.text, items=value.items, low=0 if naturals else None, is_size=sizes)
        line = Line(value.text, origin, name, value.kind, frozenset(reader.read_names), name=text)
        self.locals[name] = local_of(value, text, is_final=name in self.once)
        reader.unassigned.discard(name)
        return line

    def check_items(self, name: str, origin: int) -> Iterator[Line]:
        """A check that a list is as long as the constant indices into it need, where its length is not known."""
        local, last = self.locals[name], self.last_items.get(name, 0)
        if local.kind is Kind.TENSORS and local.length is None and name in self.once:
            self.locals[name] = replace(local, least=last + 1)
            if last:  # a list of tensors has one at least
                text = f'TORCH_CHECK_INDEX({local.text}.size() > {last}, "tuple index out of range");'
                yield Line(text, origin, reads=frozenset([name]))

    def fresh(self, name: str) -> str:
        name = underscored_name(name, self.taken)
        self.taken.add(name)
        return name

    def temporary(self, name: str, value: Value, origin: int) -> Line:
        """A local of the C++ text alone, in a statement before the one that needs it."""
        key = name = self.fresh(name)
        self.locals[key] = local_of(value, name, is_final=True)
        return Line(value.text, origin, key, value.kind, frozenset(self.expressions.read_names), name=name)

    def unpack(self, names: Sequence[cst.Name], node: cst.BaseExpression, origin: int) -> Iterator[Line]:
        reader, count = self.expressions, len(names)
        if isinstance(node, cst.Tuple | cst.List):
            yield from self.assign_each(names, [element.value for element in node.elements], node, origin)
            return
        value = reader.read(node)
        if value.kind is Kind.SIZES and value.text.endswith(".sizes()"):
            owner = value.text.removesuffix(".sizes()")
            if "(" in owner or " " in owner:
                saved = self.temporary("tensor", Value(Kind.TENSOR, owner), origin)
                yield saved
                owner = saved.target
            reads = frozenset({*reader.read_names, owner})
            if self.ranks.get(owner) != count:
                reader.helpers["check_count"] = None
                yield Line(f"check_count({owner}.dim(), {count});", origin, reads=reads)
            items = [Value(Kind.INT, f"{owner}.size({at})", low=0, is_size=True) for at in range(count)]
        elif value.kind in (Kind.TENSORS, Kind.SIZES):
            if "(" in value.text or "{" in value.text:
                saved = self.temporary("parts", value, origin)
                yield saved
                value = self.locals[saved.target].value
                length = self.locals[saved.target].length
            else:
                length = self.locals[python_name(self.locals, value.text)].length
            reads = frozenset({*reader.read_names, python_name(self.locals, value.text)})
            if length is None:
                reader.helpers["check_count"] = None
                yield Line(f"check_count({value.text}.size(), {count});", origin, reads=reads)
            elif length != count:
                raise reader.refused(
                    "P312", f"this unpacks {length} values into {count} names", node, "name each value"
                )
            kind = Kind.TENSOR if value.kind is Kind.TENSORS else Kind.INT
            items = [
                Value(kind, f"{value.text}[{at}]", low=value.low, is_size=value.is_size, bases=value.bases)
                for at in range(count)
            ]
        else:
            raise reader.refused(
                "P802", f"{value.kind.value} has no parts to unpack", node, "unpack a shape or a list of tensors"
            )
        for name, item in zip(names, items, strict=True):
            if name.value != "_":
                reader.read_names = {*reads}
                line = self.bind(name.value, name, item, origin)
                line.may_go = item.kind is Kind.INT
                yield line

    def assign_each(
        self, names: Sequence[cst.Name], nodes: Sequence[cst.BaseExpression], node: cst.BaseExpression, origin: int
    ) -> Iterator[Line]:
        """`a, b = c, d`: through temporaries where a value reads a name that is assigned before it."""
        reader = self.expressions
        if len(names) != len(nodes):
            raise reader.refused(
                "P312", f"this unpacks {len(nodes)} values into {len(names)} names", node, "name each value"
            )
        values, reads = [], []
        for each in nodes:
            reader.read_names = set()
            values.append(reader.value(each))
            reads.append(frozenset(reader.read_names))
        for at, name in enumerate(names):
            if any(name.value in later for later in reads[at + 1 :]):
                for place, value in enumerate(values):
                    reader.read_names = {*reads[place]}
                    saved = self.temporary(f"new_{names[place].value}", value, origin)
                    yield saved
                    values[place], reads[place] = self.locals[saved.target].value, frozenset({saved.target})
                break
        for name, value, read in zip(names, values, reads, strict=True):
            reader.read_names = {*read}
            yield self.bind(name.value, name, value, origin)

    def augmented(
        self, statement: cst.AugAssign, target: cst.Name, sign: str, node: cst.BaseExpression, origin: int
    ) -> Line:
        reader = self.expressions
        before = reader.name(target)
        if before.kind is Kind.TENSOR:
            hint = f"write `{target.value} = {target.value} {sign} {source_text(node)}`, or let a kernel write"
            raise reader.refused("P802", f"`{sign}=` writes to the tensor in place", statement, hint)
        value = binary(reader, statement, target, sign, node)  # type: ignore[arg-type]
        return self.bind(target.value, statement, value, origin)


def python_name(locals_: dict[str, Local], text: str) -> str:
    return next(name for name, local in locals_.items() if local.text == text)
