"""Lists the headers of C and C++ types and of `math` functions; the headers of helpers stand beside their texts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

MATH: Final = "cmath"
"""The header of C's functions of floats, of INFINITY and of NAN."""
_OF_TYPES: Final = {
    "__half": "cuda_fp16.h",
    "__nv_bfloat16": "cuda_bf16.h",
    "c10::Half": "torch/headeronly/util/Half.h",
    "c10::BFloat16": "torch/headeronly/util/BFloat16.h",
    "complex<float>": "cuda/std/complex",
    "complex<double>": "cuda/std/complex",
    "std::complex<float>": "complex",
    "std::complex<double>": "complex",
}


def headers_of_types(types: Iterable[str]) -> frozenset[str]:
    """The headers that declare `types`, less those of C itself."""
    return frozenset(_OF_TYPES[type_] for type_ in types if type_ in _OF_TYPES)
