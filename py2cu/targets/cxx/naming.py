"""Names that C++ cannot have get one that it can: keywords, macros, CUDA's own names, non-ASCII letters.

def double(i: Index["n"], int_: …, α: float)    →    int_, alpha
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Mapping
from typing import Final

from py2cu.analysis.call_graph import callees
from py2cu.builtins import ROWS
from py2cu.diagnostics import Reporter
from py2cu.ir.expressions import Call
from py2cu.ir.header_names import is_declared, is_macro
from py2cu.ir.kernels import Kernel, Space
from py2cu.ir.names import free_name
from py2cu.ir.visit import all_expressions, with_fields

_KEYWORDS: Final = """
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
    UINT64_MAX SIZE_MAX M_PI M_E M_PI_2 M_PI_4 linux unix offsetof va_arg va_start va_end setjmp
    int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t size_t ptrdiff_t index_t std
    blockIdx threadIdx blockDim gridDim warpSize dim3 Dim3 cudaStream_t cudaError_t min max abs
    wrapping_add wrapping_sub wrapping_mul wrapping_abs negated add_elements subtract_elements
    multiply_elements narrowed widened to_uint64 floor_div floor_mod int_pow python_min python_max complex complex_mul
    complex_div complex_pow at c10 torch atomic_update atomic_add atomic_sub atomic_min atomic_max atomic_exch
    atomic_cas atomic_and atomic_or atomic_xor atomic_inc atomic_dec Vector2 Vector4 Vector8 Vector16
    printf atomicAdd atomicSub atomicMin atomicMax atomicExch atomicCAS atomicAnd atomicOr atomicXor atomicInc atomicDec
"""
# What launchers and bindings call their own variables.
_VARIABLES: Final = (
    "grid block stream flat_block guard error blocks threads shared_bytes allow_shared max_blocks launch_cooperatively "
    "cooperative_groups grid_barrier running next_block MAX_THREADS each_thread each_thread_in_turn "
    "each_thread_in_turns first_failure"
)
# Classes and functions of the CPU's text.
_CLASSES: Final = "Turns GridBarrier FailedAssert FirstFailure Abandoned assert_that is_large"
# Types of CUDA's headers, which variables may hide and functions may not be called after.
_TYPES: Final = "half half2 nv_bfloat16 nv_bfloat162 uchar ushort uint ulong"
# Functions of numbers that the headers of C and CUDA declare, which functions may not be called after, nor after their
# variants for float: `rsqrt`, `rsqrtf`.
_FUNCTIONS: Final = """
    acos acosh all any asin asinh atan atan2 atanh ballot calloc cbrt ceil clock clock64 copysign cos cosh cospi
    cyl_bessel_i0 cyl_bessel_i1 difftime div drem erf erfc erfcinv erfcx erfinv exit exp exp10 exp2 expm1 fabs fadd fdim
    fdiv fdivide ffma ffs ffsl ffsll finite float2 float4 floor fma fmax fmaximum fmaximum_mag fmaximum_num fmaxmag fmin
    fminimum fminimum_mag fminimum_num fminmag fmod fmul fsqrt fsub gamma hypot ilogb isalnum isalpha isblank iscntrl
    isdigit isgraph islower isprint ispunct isspace isupper isxdigit j0 j1 jn labs ldexp ldiv lgamma llabs lldiv llmax
    llmin llogb llrint llround log log10 log1p log2 logb lrint lround malloc nan nearbyint nextafter nextdown nextup
    norm3d norm4d normcdf normcdfinv pow putchar rand random rcbrt remainder rhypot rint rnorm3d rnorm4d round roundeven
    rsqrt scalb scalbln scalbn significand sin sinh sinpi sqrt srand srandom tan tanh tgamma tolower toupper trunc
    ullmax ullmin umax umin y0 y1 yn
"""
# What texts call what threads do together: functions of the user's get another name.
_TOGETHER: Final = """
    Warp activemask all_sync any_sync ballot_sync lane_id match_any_sync reduce_add_sync reduce_and_sync reduce_max_sync
    reduce_min_sync reduce_or_sync reduce_xor_sync shfl_down_sync shfl_sync shfl_up_sync shfl_xor_sync
"""
_OF_FUNCTIONS: Final = frozenset(f"{_TYPES} {_FUNCTIONS} {_TOGETHER}".split()).union(
    *(row.spelling.values() for row in ROWS.values())
)
RESERVED: Final = frozenset(f"{_KEYWORDS} {_TAKEN} {_VARIABLES} {_CLASSES}".split())


def rename(kernel: Kernel, reporter: Reporter) -> Kernel:
    """The kernel and its device functions, each with its `symbol`, and with `renamed` mapping every name that needs
    another spelling, and only those.

    The kernel's own name never stands alone (`double` makes `double_kernel`), so it may be a word of C++.
    """
    symbols = {function.key: _symbol(function) for function in kernel.functions}
    functions = tuple(_rename(function, symbols) for function in kernel.functions)
    return with_fields(_rename(kernel, symbols), functions=functions)


def _rename(kernel: Kernel, symbols: Mapping[str, str]) -> Kernel:
    """The same for one of them; `symbols` are those of the functions that it may call, which get underscores where a
    file has more of that name: a local that would hide one gets a number.
    """
    names = [p.name for p in kernel.parameters] + [i.name for i in kernel.indices]
    names += [buffer.name for buffer in kernel.array_decls]
    names += [*kernel.dims, *(name for name, _ in kernel.locals)]
    taken = set(names)
    called = _called_functions(kernel) | {variable.symbol for variable in kernel.variables}
    functions = {_stem(symbols[key]) for key in callees(kernel.body)}
    called |= {f"{buffer.name}_bytes" for buffer in kernel.array_decls if buffer.space is Space.SHARED}
    renamed: dict[str, str] = {}
    for name in dict.fromkeys(names):
        spelled = f"{name}_" if name in called else spell_identifier(name)
        while spelled != name and spelled in taken:
            spelled += "_"
        if _stem(spelled) in functions:
            spelled = free_name(_stem(spelled), taken | called | functions | RESERVED)
        if spelled != name:
            taken.add(spelled)
            renamed[name] = spelled
    return with_fields(kernel, renamed=tuple(renamed.items()), symbol=_symbol(kernel))


def _symbol(kernel: Kernel) -> str:
    if not kernel.key:
        return ascii_identifier(kernel.name)
    if kernel.name in _CLASSES.split():
        return f"{kernel.name}_"
    if kernel.name in _VARIABLES.split():
        return kernel.name
    is_taken = (
        kernel.name in _OF_FUNCTIONS or is_declared(kernel.name) or kernel.name.removesuffix("f") in _OF_FUNCTIONS
    )
    return f"{kernel.name}_" if is_taken else spell_identifier(kernel.name)


def _stem(name: str) -> str:
    """`name` less the underscores at its end."""
    return name.rstrip("_") or "_"


def _called_functions(kernel: Kernel) -> set[str]:
    """The C functions that the body calls: a local of that name would hide one."""
    calls = [node.function for node in all_expressions(kernel.body) if isinstance(node, Call)]
    return {c for key in calls if key in ROWS for c in ROWS[key].spelling.values()} | set(calls)


@functools.lru_cache(4096)
def spell_identifier(name: str) -> str:
    """`name` itself where C++ can have it; else ASCII, not reserved, and as near to it as can be."""
    text = ascii_identifier(name)
    return f"{text}_" if text in RESERVED or is_macro(text) else text


def ascii_identifier(name: str) -> str:
    """`name` in letters that C++ has, with no reserved underscores."""
    text = "".join(_ascii(char) for char in unicodedata.normalize("NFKC", name))
    text = re.sub(r"__+", "_", text)
    if re.match(r"_[A-Z]", text):
        text = f"v{text}"
    return text


def _ascii(char: str) -> str:
    if char.isascii():
        return char if char.isalnum() else "_"  # of what a letter is in other forms, "(1)", too
    plain = unicodedata.normalize("NFKD", char)[0]
    if plain.isascii() and plain.isalnum():
        return plain
    words = unicodedata.name(plain, "").split()
    return words[-1].lower() if words[:1] == ["GREEK"] else f"u{ord(char):04x}"
