"""Lists the helpers that targets share: small functions, emitted above a kernel, where C++ differs from Python.

`{prefix}` stands for the specifiers of a device function.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from py2cu.targets.cxx.helpers.bits import BIT_HELPERS
from py2cu.targets.cxx.helpers.complex_numbers import COMPLEX_HELPERS
from py2cu.targets.cxx.helpers.floats import FLOAT_HELPERS
from py2cu.targets.cxx.helpers.integers import INTEGER_HELPERS
from py2cu.targets.cxx.includes import MATH

_UPDATE: Final = """\
// {what} atomically; returns the previous element.
template <typename T>
{prefix} T atomic_{name}(T* at, T value)
{{
    return atomic_update(at, [=](T old) {{ return static_cast<T>({next}); }});
}}
"""


def atomic(name: str, what: str, next_: str, text: str = _UPDATE) -> str:
    """The helper for one atomic operation; `text` is its pattern, by default a call of the target's `atomic_update`."""
    return text.replace("{what}", what).replace("{name}", name).replace("{next}", next_)


def _vector(count: int) -> str:
    """The struct of a row of `count` elements."""
    return f"""\
// {count} adjacent elements, loaded or stored by one instruction.
template <typename T>
struct alignas({count} * sizeof(T)) Vector{count} {{{{
    T {", ".join(f"x{at}" for at in range(count))};
}}}};
"""


HELPERS: Final[dict[str, str]] = {
    **{f"Vector{count}": _vector(count) for count in (2, 4, 8, 16)},
    "aligned_vector": """\
// N neighbours in memory, which are loaded and stored 16 bytes at a time.
template <typename T, int N>
struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) aligned_vector {{
    T elements[N];
    {prefix} T& operator[](int k) {{ return elements[k]; }}
    {prefix} T operator[](int k) const {{ return elements[k]; }}
}};

template <int N, typename T>
{prefix} aligned_vector<T, N> load_vector(const T* from)
{{
    return *reinterpret_cast<const aligned_vector<T, N>*>(from);
}}

template <typename T, int N>
{prefix} void store_vector(T* to, const aligned_vector<T, N>& vector)
{{
    *reinterpret_cast<aligned_vector<T, N>*>(to) = vector;
}}
""",
    **INTEGER_HELPERS,
    **BIT_HELPERS,
    **FLOAT_HELPERS,
    **COMPLEX_HELPERS,
}
"""The text of every helper that targets share, by its name."""


_TRAITS: Final = "type_traits"
HEADERS: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(
        ("add_elements", "subtract_elements", "multiply_elements", "to_compute_type", "round_to"), (_TRAITS,)
    ),
    **dict.fromkeys(("wrapping_add", "wrapping_sub", "wrapping_mul", "wrapping_shift", "wrapping_abs"), (_TRAITS,)),
    "bits_as": ("cstring",),
    "quotient": ("cuda_fp16.h", _TRAITS),
    **dict.fromkeys(("count_bits", "leading_zeros", "reverse_bits"), (_TRAITS,)),
    **dict.fromkeys(("negate_hidden", "int_pow", "gcd", "lcm", "factorial"), (_TRAITS,)),
    **dict.fromkeys(("floor_div", "floor_mod", "isqrt"), (MATH, _TRAITS)),
    **dict.fromkeys(("fraction", "mantissa", "exponent", "quotient_bits", "ldexp_by_any", "round_decimals"), (MATH,)),
}
"""The headers that the text of a helper needs, by its name."""


def takes_one_type(name: str) -> bool:
    """True where all arguments of the helper have the type of its result."""
    return name not in (
        "to_uint64",
        "to_compute_type",
        "complex_pow",
        "lane_id",
        "exponent",
        "quotient_bits",
        "ldexp_by_any",
        "wide_product",
        *BIT_HELPERS,
    )


@dataclass(frozen=True, slots=True)
class TargetHelpers:
    """The helpers of a target: the common ones, and its `own`, which replace common ones of the same name."""

    prefix: str  # goes before a function
    own: Mapping[str, str]
    headers_by_name: Mapping[str, tuple[str, ...]]

    def text(self, name: str) -> str:
        """The definition of helper `name`."""
        text = self.own[name] if name in self.own else HELPERS[name]
        return text.format(prefix=self.prefix)

    def __contains__(self, name: str) -> bool:
        return name in self.own or name in HELPERS

    def headers(self, name: str) -> tuple[str, ...]:
        """The headers that it needs."""
        return (self.headers_by_name if name in self.own else HEADERS).get(name, ())
