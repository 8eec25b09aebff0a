"""Assignments of host functions: names, unpacked shapes and lists, augmented ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import libcst as cst

from py2cu.frontend.names.syntax import source_text
from py2cu.hosts.model.tree import Line
from py2cu.hosts.model.values import Kind, Value, identifier
from py2cu.hosts.reading.arithmetic import SIGNS, binary
from py2cu.hosts.reading.expressions import ExpressionReader
from py2cu.hosts.reading.reader import Refused
from py2cu.ir.names import underscored_name


@dataclass(slots=True, kw_only=True)
class AssignmentReader(ExpressionReader):
    """Reads assignments, and records what is known of each local."""

    once: frozenset[str]  # the locals with a single assignment, outside of loops
    names: dict[str, str]  # in C++, by the name in Python
    taken: set[str]
    lists: frozenset[str]  # parameters that refer to a list of tensors, by name in C++
    ranks: Mapping[str, int]  # of the parameters whose annotation says how many dimensions they have, by name in C++
    last_items: Mapping[str, int]  # by list, the largest constant index into it
    kinds: dict[str, Kind] = field(default_factory=dict)  # of every local so far
    origin: int = 0  # the line of the statement that is being read

    def line(self, text: str, target: str = "", kind: Kind = Kind.NONE, name: str = "") -> Line:
        return Line(text, self.origin, target, kind, frozenset(self.read_names), name=name)

    def assign(self, target: cst.BaseAssignTargetExpression, node: cst.BaseExpression) -> Iterator[Line]:
        match target:
            case cst.Name(value=name):
                yield self.bind(name, target, self.read(node))
                yield from self.check_items(name)
                return
            case cst.Tuple(elements=elements) | cst.List(elements=elements):
                names = [element.value for element in elements if isinstance(element.value, cst.Name)]
                if len(names) == len(elements):
                    yield from self.unpack(names, node)
                    return
            case cst.Subscript():
                raise self.unusable("host functions do not write to elements", target, "let a kernel write them")
        raise self.unsupported("host functions assign to names", target, "write `name = …`")

    def bind(self, name: str, node: cst.CSTNode, value: Value) -> Line:
        """The line `name = value`; records what is known of the local."""
        known = self.locals.get(name)
        if value.kind is Kind.NONE:
            raise self.unusable("this gives no value to assign", node, "call it on a line of its own")
        kind = self.kinds.setdefault(name, value.kind) if known is None else known.kind
        if kind not in (value.kind, Kind.NONE):
            what = f"`{name}` is {kind.value} before, and {value.kind.value} here"
            raise self.refused("P306", what, node, "use another name: a local in C++ has one type")
        text = self.names.get(name) or self.fresh(identifier(name))
        self.names[name] = text
        if value.tensor:
            value = Value(Kind.SIZES, f"{value.text}.vec()", low=0, is_size=True)
        value = self.owned(value)
        self.locals[name] = value.local(text, is_final=name in self.once)
        self.unassigned.discard(name)
        return self.line(value.text, name, value.kind, text)

    def owned(self, value: Value) -> Value:
        """The value, or a copy of a list that a parameter refers to."""
        return replace(value, text=f"{value.text}.vec()") if value.text in self.lists else value

    def check_items(self, name: str) -> Iterator[Line]:
        """A check that a list is as long as the constant indices into it need, where its length is not known."""
        local, last = self.locals[name], self.last_items.get(name, 0)
        if local.kind is Kind.TENSORS and local.length is None and name in self.once:
            self.locals[name] = replace(local, least=last + 1)
            if last:  # a list of tensors has one at least
                text = f'TORCH_CHECK_INDEX({local.text}.size() > {last}, "tuple index out of range");'
                yield Line(text, self.origin, reads=frozenset([name]))

    def fresh(self, name: str) -> str:
        name = underscored_name(name, self.taken)
        self.taken.add(name)
        return name

    def temporary(self, name: str, value: Value) -> Line:
        """A local of the C++ text alone, in a statement before the one that needs it."""
        name = self.fresh(name)
        key = f"<{name}>"  # no name of the Python
        self.locals[key] = value.local(name, is_final=True)
        return self.line(value.text, key, value.kind, name)

    def unpack(self, names: Sequence[cst.Name], node: cst.BaseExpression) -> Iterator[Line]:
        """`a, b = x.shape`, `a, b = tensors`: the length is checked, here or in C++."""
        if isinstance(node, cst.Tuple | cst.List):
            yield from self.assign_each(names, [element.value for element in node.elements], node)
            return
        value = self.read(node)
        if value.kind not in (Kind.TENSORS, Kind.SIZES):
            what = f"{value.kind.value} has no parts to unpack"
            raise self.unusable(what, node, "unpack a shape or a list of tensors")
        owner = Value(Kind.TENSOR, value.tensor) if value.tensor else value
        if any(sign in owner.text for sign in "({ "):
            saved = self.temporary("tensor" if value.tensor else "parts", owner)
            yield saved
            self.read_names.add(saved.target)
            owner = self.locals[saved.target]
            value = Value(Kind.SIZES, f"{owner.text}.sizes()") if value.tensor else owner
        length = self.ranks.get(owner.text) if value.tensor else value.length
        if length is None:
            self.helpers["check_count"] = None
            yield self.line(f"check_count({owner.text}.{'dim' if value.tensor else 'size'}(), {len(names)});")
        elif length != len(names):
            raise self.of_another_length(length, names, node)
        for at, name in enumerate(names):
            if name.value != "_":
                line = self.bind(name.value, name, value.item(at))
                line.may_go = line.kind is Kind.INT
                yield line

    def assign_each(
        self, names: Sequence[cst.Name], nodes: Sequence[cst.BaseExpression], node: cst.CSTNode
    ) -> Iterator[Line]:
        """`a, b = c, d`: through temporaries where a value reads a name that is assigned before it."""
        if len(names) != len(nodes):
            raise self.of_another_length(len(nodes), names, node)
        values, reads = [], []
        for each in nodes:
            self.read_names = set()
            values.append(self.value(each))
            reads.append(self.read_names)
        if any(name.value in later for at, name in enumerate(names) for later in reads[at + 1 :]):
            for at, name in enumerate(names):
                self.read_names = reads[at]
                saved = self.temporary(f"new_{name.value}", values[at])
                yield saved
                values[at], reads[at] = self.locals[saved.target], {saved.target}
        for name, value, read in zip(names, values, reads, strict=True):
            self.read_names = read
            yield self.bind(name.value, name, value)

    def of_another_length(self, length: int, names: Sequence[cst.Name], node: cst.CSTNode) -> Refused:
        what = f"this unpacks {length} values into {len(names)} names"
        return self.refused("P312", what, node, "name each value")

    def augmented(self, statement: cst.AugAssign, target: cst.Name) -> Line:
        """`n += 1`."""
        sign = SIGNS[type(statement.operator)]
        if self.name(target).kind is Kind.TENSOR:
            hint = (
                f"write `{target.value} = {target.value} {sign} {source_text(statement.value)}`, or let a kernel write"
            )
            raise self.unusable(f"`{sign}=` writes to the tensor in place", statement, hint)
        return self.bind(target.value, statement, binary(self, statement, target, sign, statement.value))
