"""Emits kernels whose threads compute packs of neighbouring elements, as `pack_elements` made them.

    aligned_vector<float, N> xs[PACKS];
    for (int pack = 0; pack < PACKS; ++pack) …    // load
    for (int pack = 0; pack < PACKS; ++pack) {
        const int64_t i = first + pack * step;
        if (i + N <= n) {
            aligned_vector<float, N> outs;
            for (int k = 0; k < N; ++k)
                outs[k] = gelu(xs[pack][k]);
            store_vector(&out[i], outs);
        } else { … }                              // fewer than N are left
    }

All loads precede the stores: an output may be an input, so the compiler does not move a load over a store.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from py2cu import ir
from py2cu.ir.substitution import substitute
from py2cu.targets.cxx.lines import Line
from py2cu.targets.cxx.statements import Emitter

_INDENT: Final = "    "


class PackEmitter(Emitter):
    """Emits the body of a kernel with one `EachPack`, whose indices have 64 bits."""

    def spell_statement(self, stmt: ir.Stmt, depth: int) -> Iterator[Line]:
        if isinstance(stmt, ir.EachPack):
            yield from _indented(self.each_pack(stmt), depth)
        else:
            yield from super().spell_statement(stmt, depth)

    def each_pack(self, stmt: ir.EachPack) -> Iterator[Line]:
        names, extent = stmt.names, self.expr(stmt.extent).text
        index, pack = self.name(stmt.index), names.pack
        yield Line(f"const int64_t {names.step} = int64_t(blockDim.x) * {names.width};")
        start = f"(int64_t(blockIdx.x) * blockDim.x * {names.count} + threadIdx.x) * {names.width}"
        yield Line(f"const int64_t {names.first} = {start};")
        if stmt.is_whole:  # without it, nvcc zeroes the packs that are not loaded, and contracts no multiply-add
            yield Line(f"if ({names.first} >= {extent}) return;")
        fits = f"{index} < {extent}" if stmt.is_whole else f"{index} + {names.width} <= {extent}"
        head = Line(f"for (int {pack} = 0; {pack} < {names.count}; ++{pack})")
        counted = Line(f"const int64_t {index} = {names.first} + {pack} * {names.step};")
        if stmt.loads:
            for name, load in zip(stmt.packs, stmt.loads, strict=False):
                yield Line(f"aligned_vector<{self.type_text(load.type)}, {names.width}> {name}[{names.count}];")
            yield Line("#pragma unroll")
            loads = _braced(Line(f"if ({fits})"), [*self.loaded(stmt)])
            yield from _braced(head, [counted, *loads])
        yield Line("#pragma unroll")
        rest = [] if stmt.is_whole else [*self.left_over(stmt)]
        yield from _braced(head, [counted, *_choice(Line(f"if ({fits})"), [*self.computed(stmt)], rest)])

    def loaded(self, stmt: ir.EachPack) -> Iterator[Line]:
        for name, load in zip(stmt.packs, stmt.loads, strict=False):
            place = self.element(load.array, load.indices)
            yield Line(f"{name}[{stmt.names.pack}] = load_vector<{stmt.names.width}>(&{place});")

    def computed(self, stmt: ir.EachPack) -> Iterator[Line]:
        """The elements of one pack."""
        names, loaded, stored = stmt.names, stmt.packs[: len(stmt.loads)], stmt.packs[len(stmt.loads) :]
        held = {name: f"{name}[{names.pack}]" if name in loaded else name for name in stmt.packs}
        for name, store in zip(stored, stmt.stores, strict=True):
            if name not in loaded:
                yield Line(f"aligned_vector<{self.type_text(store.type)}, {names.width}> {name};")
        arguments = {value: f"{held[name]}[{names.place}]" for value, name in zip(stmt.values, loaded, strict=True)}
        arguments[stmt.index] = f"{self.name(stmt.index)} + {names.place}"
        yield Line("#pragma unroll")
        loop = Line(f"for (int {names.place} = 0; {names.place} < {names.width}; ++{names.place})")
        results = [f"{held[name]}[{names.place}]" for name in stored]
        yield from _braced(loop, [*self.element_of(stmt, arguments, results)])
        for name, store in zip(stored, stmt.stores, strict=True):
            yield Line(f"store_vector(&{self.element(store.array, store.indices)}, {held[name]});")

    def left_over(self, stmt: ir.EachPack) -> Iterator[Line]:
        """The elements that make no pack."""
        last = stmt.names.last
        index = {stmt.index: ir.Name(last, type=ir.INDEX)}
        loads, stores = (
            [self.element(each.array, tuple(substitute(place, index) for place in each.indices)) for each in accesses]
            for accesses in (stmt.loads, stmt.stores)
        )
        arguments = dict(zip(stmt.values, loads, strict=True)) | {stmt.index: last}
        loop = f"for (int64_t {last} = {self.name(stmt.index)}; {last} < {self.expr(stmt.extent).text}; ++{last})"
        head = Line(loop, comment=f"  // fewer than {stmt.names.width}")
        yield Line("#pragma unroll 1")  # or compilers take twice as long
        yield from _braced(head, [*self.element_of(stmt, arguments, stores)])

    def element_of(self, stmt: ir.EachPack, arguments: Mapping[str, str], places: list[str]) -> Iterator[Line]:
        """The call of the function of one element; `places` get its results."""
        callee = self.callees[stmt.element.function]
        parameters = callee.function.parameters
        args = (
            arguments[p.name] if p.name in arguments else self.expr(arg).text
            for p, arg in zip(parameters, stmt.element.args, strict=True)
        )
        deduced = {self.type_name(p.type.element if isinstance(p.type, ir.ArrayType) else p.type) for p in parameters}
        types = ", ".join("int64_t" if name == "index_t" else name for name in callee.template)
        template = f"<{types}>" if {*callee.template} - deduced else ""
        call = f"{callee.function.symbol}{template}({', '.join(args)})"
        if not stmt.results:
            yield Line(f"{places[0]} = {call};")
            return
        yield Line(f"const auto {stmt.names.result} = {call};")
        for place, field in zip(places, stmt.results, strict=True):
            yield Line(f"{place} = {stmt.names.result}.{field};")


def _indented(lines: Iterable[Line], depth: int) -> Iterator[Line]:
    return (replace(line, code=f"{_INDENT * depth}{line.code}") for line in lines)


def _braced(head: Line, body: list[Line]) -> Iterator[Line]:
    """A loop or an `if`; its braces are left out around one line."""
    if len(body) == 1:
        yield head
        yield from _indented(body, 1)
    else:
        yield from _choice(head, body, [])


def _choice(head: Line, body: list[Line], orelse: list[Line]) -> Iterator[Line]:
    yield replace(head, code=f"{head.code} {{")
    yield from _indented(body, 1)
    if orelse:
        yield Line("} else {")
        yield from _indented(orelse, 1)
    yield Line("}")
