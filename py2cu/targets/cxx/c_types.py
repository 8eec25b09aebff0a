"""Models C's arithmetic types: the type of an operation by its operands, and the conversions that keep a value."""

from __future__ import annotations

from typing import Final

UNSIGNED_INDEX: Final = "unsigned index_t"
"""The common type of `index_t` and an unsigned: unsigned if `index_t` is `int`, else `int64_t`. No text names it."""
# Conversion ranks, from narrow to wide; `index_t` has the rank of its narrower instantiation.
C_RANK: Final = {
    "bool": 0, "int8_t": 0, "uint8_t": 0, "int16_t": 0, "uint16_t": 0, "int": 1, "int32_t": 1, "unsigned": 2,
    "uint32_t": 2, "index_t": 3, UNSIGNED_INDEX: 3, "int64_t": 4, "uint64_t": 5, "__half": 6, "__nv_bfloat16": 6,
    "float": 7, "double": 8, "cuda::std::complex<float>": 9, "cuda::std::complex<double>": 10,
}  # fmt: skip
HALVES: Final = frozenset(("__half", "__nv_bfloat16"))
"""Classes, which C++ implicitly converts only to float."""
COMPLEXES: Final = frozenset(("cuda::std::complex<float>", "cuda::std::complex<double>"))
"""Classes whose operators take two numbers of one type."""

_UNSIGNED: Final = frozenset(("uint8_t", "uint16_t", "uint32_t", "uint64_t", "unsigned", UNSIGNED_INDEX))
FLOATS: Final = HALVES | {"float", "double"}


def qualified(c_type: str) -> str:
    """The name of a C++ type in files without `using cuda::std::complex`."""
    return f"cuda::std::{c_type}" if f"cuda::std::{c_type}" in COMPLEXES else c_type


def same_type(a: str, b: str) -> bool:
    """True where the two names mean one type."""
    plain = {"int32_t": "int", "uint32_t": "unsigned"}
    return plain.get(a, a) == plain.get(b, b)


def is_unsigned(c_type: str) -> bool:
    return c_type in _UNSIGNED


def arithmetic_type(c_type: str) -> str:
    """What C computes in for operands of `c_type`: narrow integers are promoted to int."""
    return "int" if C_RANK[c_type] <= 1 else c_type


def common_type(a: str, b: str) -> str:
    """C's usual arithmetic conversions."""
    common = max(a, b, key=C_RANK.__getitem__)
    if C_RANK[common] == C_RANK["index_t"] and (is_unsigned(a) or is_unsigned(b)):
        return UNSIGNED_INDEX  # rule: index-unsigned
    return arithmetic_type(common)


def computes_in(target: str, a: str, b: str) -> bool:
    """True where C computes in a type as wide as `target` for operands of `a` and `b`.

    Signedness is ignored: where it matters, an earlier pass has converted launch objects to signed.
    """
    common = common_type(a, b)
    return common == target or (common == UNSIGNED_INDEX and target == "index_t")


def keeps_value(source: str, target: str) -> bool:
    """True if assigning a `source` to a `target` needs no cast: nothing is lost but digits of an integer in a float."""
    if source == target:
        return True
    if source in COMPLEXES or target in COMPLEXES:
        return False
    if source in HALVES or target in HALVES:
        return target == "float"
    if target in ("float", "double"):
        return source != "double"
    if source in ("float", "double") or changes_sign(source, target):
        return False
    return C_RANK[source] <= C_RANK[target]


def converts(source: str, target: str) -> bool:
    """True if C converts an operand of type `source` to `target` by itself, and the number stays the same."""
    return C_RANK[source] <= C_RANK[target] and source not in HALVES and not changes_sign(source, target)


def changes_sign(source: str, target: str) -> bool:
    """True where a negative `source` becomes another number in `target`."""
    return is_unsigned(target) and not is_unsigned(source) and source != "bool"
