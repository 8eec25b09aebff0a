"""Spells Python names as C++ identifiers: keywords, macros and names of the emitted text get an underscore.

int, α, __x        →        int_, alpha, _x
"""

from __future__ import annotations

import functools
import re
import unicodedata
from typing import Final

from py2cu.ir.header_names import is_macro

KEYWORDS: Final = """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class compl
    concept const consteval constexpr constinit const_cast continue co_await co_return co_yield decltype default delete
    do double dynamic_cast else enum explicit export extern false float for friend goto if inline int long mutable
    namespace new noexcept not not_eq nullptr operator or or_eq private protected public register reinterpret_cast
    requires return short signed sizeof static static_assert static_cast struct switch template this thread_local throw
    true try typedef typeid typename typeof union unsigned using virtual void volatile wchar_t while xor xor_eq
"""


# Macros of the standard headers, and names that the emitted texts themselves use.
_TAKEN: Final = """
    NULL EOF BUFSIZ RAND_MAX NAN INFINITY HUGE_VAL HUGE_VALF INT_MAX INT_MIN LONG_MAX LONG_MIN FLT_MAX FLT_MIN DBL_MAX
    DBL_MIN CHAR_BIT assert errno stdin stdout stderr signbit isnan isinf isfinite isnormal fpclassify isgreater isless
    INT8_MAX INT16_MAX INT32_MAX INT64_MAX INT8_MIN INT16_MIN INT32_MIN INT64_MIN UINT8_MAX UINT16_MAX UINT32_MAX
    UINT64_MAX SIZE_MAX M_PI M_E M_PI_2 M_PI_4 linux unix offsetof va_arg va_start va_end setjmp int8_t int16_t int32_t
    int64_t uint8_t uint16_t uint32_t uint64_t size_t ptrdiff_t index_t std blockIdx threadIdx blockDim gridDim warpSize
    dim3 Dim3 cudaStream_t cudaError_t min max abs wrapping_add wrapping_sub wrapping_mul wrapping_abs negate_hidden
    add_elements subtract_elements multiply_elements round_to to_compute_type to_uint64 floor_div floor_mod int_pow
    python_min python_max complex complex_mul complex_div complex_pow at c10 torch atomic_update atomic_add atomic_sub
    atomic_min atomic_max atomic_nanmin atomic_nanmax atomic_exch atomic_cas atomic_and atomic_or atomic_xor atomic_inc
    atomic_dec Vector2 Vector4 Vector8 Vector16 printf atomicAdd atomicSub atomicMin atomicMax atomicExch atomicCAS
    atomicAnd atomicOr atomicXor atomicInc atomicDec hide_counter ldg_row ldcs_row stcs_row aligned_vector load_vector
    store_vector
"""


# What launchers and bindings call their own variables.
LAUNCHER_NAMES: Final = (
    "grid block stream flat_block guard error blocks threads shared_bytes allow_shared max_blocks launch_cooperatively "
    "cooperative_groups grid_barrier running next_block MAX_THREADS for_each_thread for_each_thread_in_order "
    "run_threads_as_fibers first_failure presence_of are_aligned"
)


# Classes and functions of the emitted CPU code.
RUNTIME_NAMES: Final = "FiberScheduler GridBarrier FailedAssert FirstFailure Abandoned assert_that fail_assert is_large"


RESERVED: Final = frozenset(f"{KEYWORDS} {_TAKEN} {LAUNCHER_NAMES} {RUNTIME_NAMES}".split())


@functools.lru_cache(4096)
def spell_identifier(name: str) -> str:
    """`name` itself if it is valid in C++; else a similar ASCII name that is not reserved."""
    text = ascii_identifier(name)
    return f"{text}_" if text in RESERVED or is_macro(text) else text  # rule: header-macro


def ascii_identifier(name: str) -> str:
    """`name` in letters that C++ has, with no reserved underscores."""
    text = "".join(_ascii(char) for char in unicodedata.normalize("NFKC", name))
    text = re.sub(r"__+", "_", text)
    if re.match(r"_[A-Z]", text):
        text = f"v{text}"
    return text


def _ascii(char: str) -> str:
    if char.isascii():
        return char if char.isalnum() else "_"  # NFKC may expand a letter into "(1)"  # rule: identifier-ascii
    plain = unicodedata.normalize("NFKD", char)[0]
    if plain.isascii() and plain.isalnum():
        return plain
    words = unicodedata.name(plain, "").split()
    return words[-1].lower() if words[:1] == ["GREEK"] else f"u{ord(char):04x}"
