"""Where the locals of a host function are declared, and its lines.

A local is declared where it is first assigned, if that is in a block around all its uses; else before the `if` or the
loop that assigns it first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from py2cu.hosts.model.tree import Block, Nest
from py2cu.hosts.model.tree import Line as Statement
from py2cu.hosts.model.values import Kind
from py2cu.targets.cxx.lines import Line, comment_text
from py2cu.targets.cxx.parameters import wrapped
from py2cu.targets.cxx.wrap_lines import wrap_line

if TYPE_CHECKING:
    from py2cu.hosts.model.signatures import HostSignature

_EMPTY: Final = {
    Kind.INT: " = 0", Kind.FLOAT: " = 0.0", Kind.BOOL: " = false", Kind.DTYPE: " = at::kFloat",
    Kind.DEVICE: " = at::kCPU",
}  # fmt: skip


def laid_out(
    head: str, parameters: Sequence[str], signature: HostSignature, checks: Sequence[str], block: Block, origin: int
) -> Iterator[Line]:
    """The lines of a function."""
    for text in (signature.doc or "").splitlines():
        yield Line(f"// {comment_text(text)}".rstrip())
    yield from (Line(line, origin) for line in wrapped(head, parameters).split("\n"))
    yield Line("{")
    for check in checks:
        yield from _wrapped(f"    {check}", 4, origin)
    declared = {p.name for p in signature.parameters}
    assigned = [line for line in _lines(block) if line.target]
    reads = set(_all_reads(block))
    texts = {line.target: line.name for line in assigned}
    layout = _Layout(
        {line.target: line.kind for line in assigned}, texts, Counter(line.target for line in assigned), reads
    )
    yield from layout.block(block, declared, 1)
    yield Line("}")


class _Layout:
    def __init__(
        self, kinds: dict[str, Kind], texts: dict[str, str], counts: Mapping[str, int], reads: set[str]
    ) -> None:
        self.kinds, self.texts, self.counts, self.reads = kinds, texts, counts, reads

    def block(self, block: Block, declared: set[str], depth: int) -> Iterator[Line]:
        declared = set(declared)
        pad = "    " * depth
        for at, statement in enumerate(block):
            yield from _comments(statement.above, pad)
            if isinstance(statement, Nest):
                later = {name for each in block[at + 1 :] for name in _mentions(each)}
                for name in dict.fromkeys(_targets(statement)):
                    if name not in declared and self.is_shared(name, statement, later):
                        declared.add(name)
                        yield Line(f"{pad}{self.kinds[name].cpp} {self.texts[name]}{_EMPTY.get(self.kinds[name], '')};")
                yield from self.nest(statement, declared, depth)
            elif statement.target and (statement.target in self.reads or not statement.may_go):
                yield from self.assignment(statement, declared, pad)
            elif statement.text and not statement.target:
                yield from _wrapped(f"{pad}{statement.text}", 4, statement.origin, statement.beside)

    def is_shared(self, name: str, nest: Nest, later: set[str]) -> bool:
        """Whether a local that `nest` assigns is used behind it, in its heads, or in several of its blocks."""
        blocks = sum(any(name in _mentions(each) for each in block) for _, block in nest.parts)
        return name in later or name in nest.reads or blocks > 1

    def assignment(self, statement: Statement, declared: set[str], pad: str) -> Iterator[Line]:
        name, kind = statement.target, statement.kind
        text = f"{statement.name} = {statement.text};"
        if name not in declared:
            declared.add(name)
            is_number = kind in (Kind.INT, Kind.FLOAT, Kind.BOOL)
            is_list = statement.text.startswith("{")
            type_ = kind.cpp if is_number or is_list else "auto"
            const = "const " if is_number and self.counts[name] == 1 else ""
            unused = (
                "[[maybe_unused]] "
                if name not in self.reads and kind not in (Kind.TENSOR, Kind.TENSORS, Kind.SIZES)
                else ""
            )
            text = f"{unused}{const}{type_} {text}"
        yield from _wrapped(f"{pad}{text}", 4, statement.origin, statement.beside)

    def nest(self, nest: Nest, declared: set[str], depth: int) -> Iterator[Line]:
        """The lines of a statement with blocks: without braces where each block is one line of code."""
        pad = "    " * depth
        blocks = [[*self.block(block, declared, depth + 1)] for _, block in nest.parts]
        is_nested = any(isinstance(each, Nest) for _, block in nest.parts for each in block)
        is_short = not is_nested and all(len(lines) == 1 and is_code(lines[0]) for lines in blocks)
        for place, ((head, _), lines) in enumerate(zip(nest.parts, blocks, strict=True)):
            opening = head if is_short else f"{'} ' if place else ''}{head} {{"
            yield from _wrapped(f"{pad}{opening}", 4, nest.origin, nest.beside if place == 0 else "")
            yield from lines
        if not is_short:
            yield Line(f"{pad}}}")


def is_code(line: Line) -> bool:
    return bool(line.code.strip()) and not line.code.lstrip().startswith("//")


def _lines(block: Block) -> Iterator[Statement]:
    for each in block:
        if isinstance(each, Nest):
            for _, inner in each.parts:
                yield from _lines(inner)
        else:
            yield each


def _targets(nest: Nest) -> Iterator[str]:
    for _, block in nest.parts:
        yield from (line.target for line in _lines(block) if line.target)


def _mentions(statement: Statement | Nest) -> set[str]:
    if isinstance(statement, Nest):
        return set(statement.reads).union(*(_mentions(each) for _, block in statement.parts for each in block))
    return {*statement.reads, *([statement.target] if statement.target else [])}


def _all_reads(block: Block) -> Iterator[str]:
    for each in block:
        yield from each.reads
        if isinstance(each, Nest):
            for _, inner in each.parts:
                yield from _all_reads(inner)


def _wrapped(text: str, hang: int, origin: int, beside: str = "") -> Iterator[Line]:
    *lines, last = wrap_line(text, hang)
    for line in lines:
        yield Line(line, origin)
    yield Line(last, origin, f"  // {comment_text(beside)}" if beside else "")


def _comments(above: Sequence[str], pad: str) -> Iterator[Line]:
    for text in above:
        yield Line(f"{pad}// {comment_text(text)}" if text else "")
