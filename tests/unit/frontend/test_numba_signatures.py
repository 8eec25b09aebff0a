"""Numba's signatures as texts: the names, the arrays, and what is no signature."""

import pytest

from py2cu import ir
from py2cu.dtypes import BOOL, C64, F32, F64, U8, U64
from py2cu.frontend.numba.signatures import NumbaArray, NumbaSignature, read_signature

ARRAY = NumbaArray(F32, 1, is_strided=False)
READ = {
    "void(float32[::1], int32)": NumbaSignature(None, (ARRAY, ir.PY_INT)),
    "(f4[::1], i4)": NumbaSignature(None, (ARRAY, ir.PY_INT)),
    "scale(f4[::1], intp)": NumbaSignature("scale", (ARRAY, ir.PY_INT)),
    "types.void(types.float32[::1])": NumbaSignature(None, (ARRAY,)),
    "none(f8[:, :])": NumbaSignature(None, (NumbaArray(F64, 2, is_strided=True),)),
    "void(u1[:, :, ::1])": NumbaSignature(None, (NumbaArray(U8, 3, is_strided=False),)),
    "void(Array(float32, 1, 'C'), Array(c8, 2, 'A'))": NumbaSignature(
        None, (ARRAY, NumbaArray(C64, 2, is_strided=True))
    ),
    "void(b1, boolean, double)": NumbaSignature(None, (*[ir.ElementType(BOOL)] * 2, ir.ElementType(F64))),
    "void(Tuple((i4, f4)), UniTuple(i8, 2))": NumbaSignature(
        None, ((ir.PY_INT, ir.ElementType(F32)), (ir.PY_INT,) * 2)
    ),
    "(int, float, bool)": NumbaSignature(None, (ir.PY_INT, ir.PY_FLOAT, ir.PY_BOOL)),
    "void(uint32, uint64)": NumbaSignature(None, (ir.PY_INT, ir.ElementType(U64))),
    "void()": NumbaSignature(None, ()),
}


@pytest.mark.parametrize("text", READ)
def test_signatures_are_read(text: str) -> None:
    assert read_signature(text) == READ[text]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("void(float33[:])", "`float33` is no type that a kernel can take"),
        ("void(float32[0])", "is no array type: write `:` for each dimension"),
        ("void(f4[::1, :])", "is contiguous in columns"),
        ("void(Array(f4, 2, 'F'))", "is contiguous in columns"),
        ("float32(float32)", "a kernel returns nothing, not `float32`"),
        ("void(float32[:]", "is no signature"),
        ("void(x for x in y)", "is no type"),
        ("", "is no signature"),
    ],
)
def test_what_is_no_signature(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message.replace("(", r"\(").replace("[", r"\[")):
        read_signature(text)
