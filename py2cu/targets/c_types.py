"""C's arithmetic types: what it computes in for which operands, and what an assignment keeps."""

from __future__ import annotations

from typing import Final

# From narrow to wide; `index_t` stands where it does for its narrower instantiation.
C_RANK: Final = {
    "bool": 0, "int8_t": 0, "uint8_t": 0, "int16_t": 0, "int": 1, "int32_t": 1, "unsigned": 2, "index_t": 3,
    "int64_t": 4, "float": 5, "double": 6,
}  # fmt: skip


def same_type(a: str, b: str) -> bool:
    """True where the two names mean one type."""
    return {"int32_t": "int"}.get(a, a) == {"int32_t": "int"}.get(b, b)


def arithmetic_type(c_type: str) -> str:
    """What C computes in for operands of `c_type`: narrow integers are promoted to int."""
    return "int" if C_RANK[c_type] <= 1 else c_type


def common_type(a: str, b: str) -> str:
    """C's usual arithmetic conversions."""
    return arithmetic_type(max(a, b, key=C_RANK.__getitem__))


def keeps_value(source: str, target: str) -> bool:
    """True where assigning a `source` to a `target` needs no cast in the eyes of a careful reader."""
    if source == target:
        return True
    if target in ("float", "double"):
        return source != "double"
    if source in ("float", "double"):
        return False
    return C_RANK[source] <= C_RANK[target]
