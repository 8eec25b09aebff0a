"""The classes of a kernel's numbers while CPython runs it: one for each dtype, and one for Python's floats and complex.

In: a dtype and a number. Out: `element_class(F32)(0.1)`, `element_class(U8)(255)`: numbers whose operators promote like
torch's, wrap or round at their dtype, and treat Python numbers as weak (docs/language.md, "Promotion"). Comparisons
give Python bools, or a `Truth` where integers are checked. Each class is generated from a row of `dtypes.py`; a float
class also from a row of `rounding.ROUNDING`.

A float element carries `error`, a bound on how far a faithful translation may be from it. Where a branch or truncation
could go either way within that error, `THREAD.tainted` is set. A tolerance per dtype would hide bugs or report
cancellation as one; a running bound does neither.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from py2cu.builtins.casts import METHODS
from py2cu.dtypes import BOOL, C128, DEFAULT_FLOAT, DTYPES, F64, DType, Kind, promote, promote_weak
from py2cu.simulator.state import THREAD
from py2cu.simulator.values.bit_views import view
from py2cu.simulator.values.checked_int import SYMBOLS, CheckedInt, division_by_zero
from py2cu.simulator.values.complex_elements import ComplexElement, define_complex
from py2cu.simulator.values.float_elements import FloatElement, define_float
from py2cu.simulator.values.integer_elements import IntElement, define_int
from py2cu.simulator.values.operators import install_operator
from py2cu.simulator.values.uncertain_bits import cast, define_uncertain

Element = FloatElement | IntElement | ComplexElement


def _define(dtype: DType) -> type[FloatElement | IntElement]:
    define = define_float if dtype.kind is Kind.FLOAT else define_int
    return define(dtype, dtype.jaxtyping)


def _define_complex(dtype: DType) -> type[ComplexElement]:
    part = _REAL[dtype.part]
    assert issubclass(part, FloatElement)
    return define_complex(dtype, dtype.jaxtyping, part)


_REAL: Final = {dtype: _define(dtype) for dtype in DTYPES if dtype.kind is not Kind.COMPLEX}
for _cls in _REAL.values():
    if issubclass(_cls, IntElement):
        _cls.uncertain, _cls.cast = staticmethod(define_uncertain(_cls)), staticmethod(cast)
_CLASSES: Final[dict[DType, type[Element]]] = {
    dtype: _define_complex(dtype) if dtype.kind is Kind.COMPLEX else _REAL[dtype] for dtype in DTYPES
}
PyFloat: Final = define_float(F64, "Double", is_python=True)
"""A Python float with its error bound: `float(x)` and `float` parameters. It raises where Python does."""
PyComplex: Final = define_complex(C128, "DoubleComplex", PyFloat)
"""A Python complex number with its error bound: `complex(x, y)`, literals and `complex` parameters."""

# A Python bool is a comparison's result, which counts as an integer.
_WEAK: Final[dict[type, Kind]] = {
    bool: Kind.INT, int: Kind.INT, CheckedInt: Kind.INT, float: Kind.FLOAT, PyFloat: Kind.FLOAT,  # rule: bool-as-int
    complex: Kind.COMPLEX, PyComplex: Kind.COMPLEX,
}  # fmt: skip


def element_class(dtype: DType) -> type[Element]:
    """The class of elements of `dtype`."""
    return _CLASSES[dtype]


def common_class(a: object, b: object) -> Any:
    """The class in which two operands compute; None if there is none, or neither operand is an element."""
    if isinstance(a, Element):
        return a.promotions[b.__class__]
    return b.promotions[a.__class__] if isinstance(b, Element) else None


def _true_divide(a: IntElement, b: IntElement) -> Any:
    """`/` of integers, in the default float type."""
    if not b:
        raise division_by_zero(a, SYMBOLS["truediv"], b)
    single = _REAL[DEFAULT_FLOAT]
    return single.from_operand(a) / single.from_operand(b)


def _fill_promotion_tables() -> None:
    """Fill the promotion tables of all classes."""
    for a, cls in _CLASSES.items():
        for b, other in _CLASSES.items():
            promoted = promote(a, b)
            cls.promotions[other] = None if promoted is None else _CLASSES[promoted]
        for weak, kind in _WEAK.items():
            promoted = promote_weak(a, kind)
            cls.promotions[weak] = None if promoted is None else _CLASSES[promoted]
        PyFloat.promotions[cls] = cls.promotions[PyFloat]
        PyComplex.promotions[cls] = cls.promotions[PyComplex]
        if issubclass(cls, IntElement):
            install_operator(cls, "truediv", _true_divide)
    for weak, kind in _WEAK.items():
        PyFloat.promotions[weak] = PyComplex if kind is Kind.COMPLEX else PyFloat
        PyComplex.promotions[weak] = PyComplex


def _item(element: Element) -> Any:
    """`item`: the element as a Python number."""
    match element:
        case ComplexElement():
            return PyComplex.convert(element)
        case FloatElement():
            return PyFloat.convert(element)
        case IntElement():
            return bool(element) if element.dtype is BOOL else THREAD.integer(int(element))


def _cast(element: Element, dtype: Any) -> Any:
    """`to` and `astype`; in a simulated kernel, a dtype is an element class."""
    if dtype not in _CLASSES.values():
        raise TypeError(f"{dtype!r} is not an element type")
    return dtype.convert(element)


def _cast_to(cls: type[Element]) -> Callable[[Element], Any]:
    """A method that casts to `cls`."""
    return lambda element: cls.convert(element)


def _add_methods() -> None:
    """Give element classes the methods by which torch and NumPy cast, and read bits."""
    methods = {name: _cast_to(_CLASSES[dtype]) for name, dtype in METHODS.items()}
    for cls in _CLASSES.values():
        for name, method in {**methods, "item": _item, "to": _cast, "astype": _cast, "view": view}.items():
            setattr(cls, name, method)


_fill_promotion_tables()
_add_methods()
