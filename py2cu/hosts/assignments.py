"""Assignments of host functions: names, unpacked shapes and lists, augmented ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import libcst as cst

from py2cu.frontend.names.syntax import source_text
from py2cu.hosts.arithmetic import binary
from py2cu.hosts.expressions import ExpressionReader
from py2cu.hosts.reader import Refused
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
                return
            case cst.Tuple(elements=elements) | cst.List(elements=elements):
                names = [element.value for element in elements if isinstance(element.value, cst.Name)]
                if len(names) == len(elements):
                    yield from self.unpack(names, node, origin)
                    return
            case cst.Subscript():
                raise reader.unusable("host functions do not write to elements", target, "let a kernel write them")
        raise reader.unsupported("host functions assign to names", target, "write `name = …`")

    def bind(self, name: str, node: cst.CSTNode, value: Value, origin: int) -> Line:
        """The line `name = value`; records the kind of the local."""
        reader, known = self.expressions, self.locals.get(name)
        if value.kind is Kind.NONE:
            raise reader.unusable("this gives no value to assign", node, "call it on a line of its own")
        if known is not None and known.kind not in (value.kind, Kind.NONE):
            what = f"`{name}` is {known.kind.value} before, and {value.kind.value} here"
            raise reader.refused("P306", what, node, "use another name: a local in C++ has one type")
        text = self.names.get(name) or self.fresh(identifier(name))
        self.names[name] = text
        if value.tensor:
            value = Value(Kind.SIZES, f"{value.text}.vec()", low=0, is_size=True)
        self.locals[name] = local_of(value, text, is_final=name in self.once)
        reader.unassigned.discard(name)
        return Line(value.text, origin, name, value.kind, frozenset(reader.read_names), name=text)

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
        name = self.fresh(name)
        self.locals[name] = local_of(value, name, is_final=True)
        return Line(value.text, origin, name, value.kind, frozenset(self.expressions.read_names), name=name)

    def unpack(self, names: Sequence[cst.Name], node: cst.BaseExpression, origin: int) -> Iterator[Line]:
        """`a, b = x.shape`, `a, b = tensors`: the length is checked, here or in C++."""
        if isinstance(node, cst.Tuple | cst.List):
            yield from self.assign_each(names, [element.value for element in node.elements], node, origin)
            return
        reader, value = self.expressions, self.expressions.read(node)
        if value.kind not in (Kind.TENSORS, Kind.SIZES):
            what = f"{value.kind.value} has no parts to unpack"
            raise reader.unusable(what, node, "unpack a shape or a list of tensors")
        owner = Value(Kind.TENSOR, value.tensor) if value.tensor else value
        if any(sign in owner.text for sign in "({ "):
            saved = self.temporary("tensor" if value.tensor else "parts", owner, origin)
            yield saved
            reader.read_names.add(saved.target)
            owner = self.locals[saved.target].value
            value = Value(Kind.SIZES, f"{owner.text}.sizes()") if value.tensor else owner
        reads = frozenset(reader.read_names)
        length = self.ranks.get(owner.text) if value.tensor else value.length
        if length is None:
            reader.helpers["check_count"] = None
            count = f"{owner.text}.{'dim' if value.tensor else 'size'}()"
            yield Line(f"check_count({count}, {len(names)});", origin, reads=reads)
        elif length != len(names):
            raise self.of_another_length(length, names, node)
        for at, name in enumerate(names):
            if name.value != "_":
                reader.read_names = {*reads}
                line = self.bind(name.value, name, value.item(at), origin)
                line.may_go = line.kind is Kind.INT
                yield line

    def assign_each(
        self, names: Sequence[cst.Name], nodes: Sequence[cst.BaseExpression], node: cst.CSTNode, origin: int
    ) -> Iterator[Line]:
        """`a, b = c, d`: through temporaries where a value reads a name that is assigned before it."""
        reader = self.expressions
        if len(names) != len(nodes):
            raise self.of_another_length(len(nodes), names, node)
        values, reads = [], []
        for each in nodes:
            reader.read_names = set()
            values.append(reader.value(each))
            reads.append(reader.read_names)
        if any(name.value in later for at, name in enumerate(names) for later in reads[at + 1 :]):
            for at, name in enumerate(names):
                reader.read_names = reads[at]
                saved = self.temporary(f"new_{name.value}", values[at], origin)
                yield saved
                values[at], reads[at] = self.locals[saved.target].value, {saved.target}
        for name, value, read in zip(names, values, reads, strict=True):
            reader.read_names = read
            yield self.bind(name.value, name, value, origin)

    def of_another_length(self, length: int, names: Sequence[cst.Name], node: cst.CSTNode) -> Refused:
        what = f"this unpacks {length} values into {len(names)} names"
        return self.expressions.refused("P312", what, node, "name each value")

    def augmented(
        self, statement: cst.AugAssign, target: cst.Name, sign: str, node: cst.BaseExpression, origin: int
    ) -> Line:
        reader = self.expressions
        if reader.name(target).kind is Kind.TENSOR:
            hint = f"write `{target.value} = {target.value} {sign} {source_text(node)}`, or let a kernel write"
            raise reader.unusable(f"`{sign}=` writes to the tensor in place", statement, hint)
        return self.bind(target.value, statement, binary(reader, statement, target, sign, node), origin)


def python_name(locals_: Mapping[str, Local], text: str) -> str:
    return next(name for name, local in locals_.items() if local.text == text)
