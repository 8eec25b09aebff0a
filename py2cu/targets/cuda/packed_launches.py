"""How a kernel whose threads compute packs is launched: in the emitted launcher, and as data for that of calls."""

from __future__ import annotations

from py2cu import ir
from py2cu.analysis.packs import BYTES
from py2cu.dtypes import DType
from py2cu.ir.abi.launch import FEW_ELEMENTS, PackedLaunch
from py2cu.ir.names import free_name, names_in_scope
from py2cu.ir.visit import names_in, statements
from py2cu.targets.cxx.extents import extent_text
from py2cu.targets.cxx.launcher.packs import PackView


def packs_of(kernel: ir.Kernel) -> PackView | None:
    """The packs of a kernel for its template; None if it has none."""
    stmt = _each_pack(kernel)
    if stmt is None:
        return None
    widest = _widest(stmt)
    width, count = _numbers(stmt)
    chosen, constants = (str(width), str(count)), ""
    if widest.variable is not None:
        chosen, size = (stmt.names.width, stmt.names.count), f"sizeof({widest.variable.symbol})"
        twice = " || ".join(f"{size} == {each}" for each in (2, 4) if _count(stmt, each) == 2)
        constants = f"{stmt.names.width} = {BYTES} / {size}, {stmt.names.count} = {twice} ? 2 : 1"
    arrays = tuple(map(kernel.c_name, _arrays(stmt)))
    rows = tuple(extent_text(row, kernel, 2) for row in _rows(kernel, stmt))
    taken = {kernel.c_name(name) for name in names_in_scope(kernel)}
    launch, called, elements = (free_name(name, taken) for name in ("launch", "kernel", "elements"))
    return PackView(
        stmt.names.width, stmt.names.count, chosen, constants, launch, called, elements, arrays, rows, _few(kernel)
    )


def pack_program(kernel: ir.Kernel) -> PackedLaunch | None:
    """The same for calls."""
    stmt = _each_pack(kernel)
    return None if stmt is None else PackedLaunch(*_numbers(stmt), _arrays(stmt), _rows(kernel, stmt))


def _few(kernel: ir.Kernel) -> str:
    """The condition under which a launch has few elements; none if all extents are constants."""
    extents = (kernel.size or ())[::-1]
    if not any(names_in(extent) for extent in extents):
        return ""  # `find_packs` knows
    # Constants last, since dimensions have 64 bits.
    ordered = sorted(extents, key=lambda extent: not names_in(extent))
    product = " * ".join(extent_text(extent, kernel, 2 if len(extents) > 1 else 0) for extent in ordered)
    return f"{product} <= {FEW_ELEMENTS}"  # rule: launch-few


def _each_pack(kernel: ir.Kernel) -> ir.EachPack | None:
    return next((stmt for stmt in statements(kernel.body) if isinstance(stmt, ir.EachPack)), None)


def _widest(stmt: ir.EachPack) -> DType:
    """The widest type that is stored."""
    return max((store.type.dtype for store in stmt.stores if isinstance(store.type, ir.ElementType)), key=_bytes)


def _bytes(dtype: DType) -> int:
    return max(dtype.bits, 8) // 8


def _numbers(stmt: ir.EachPack) -> tuple[int, int]:
    size = _bytes(_widest(stmt))
    return BYTES // size, _count(stmt, size)


def _count(stmt: ir.EachPack, size: int) -> int:
    """The packs of a thread whose widest result has `size` bytes: two where one would load too little at a time."""
    dtypes = [load.type.dtype for load in stmt.loads if isinstance(load.type, ir.ElementType)]
    loaded = BYTES // size * sum(_bytes(dtype) if dtype.variable is None else size for dtype in dtypes)
    return 2 if size == 2 or (size == 4 and loaded <= BYTES) else 1


def _arrays(stmt: ir.EachPack) -> tuple[str, ...]:
    return tuple(dict.fromkeys(access.array for access in (*stmt.loads, *stmt.stores)))


def _rows(kernel: ir.Kernel, stmt: ir.EachPack) -> tuple[ir.DimExpr, ...]:
    """The extents that must be multiples of a pack."""
    (extent,) = (index.extent for index in kernel.indices if index.name == stmt.index)
    return (extent,) if stmt.is_whole and not isinstance(extent, ir.Constant) else ()
