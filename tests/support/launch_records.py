"""The launchers of emitted `.cu` texts, compiled for the CPU, where a launch is recorded instead of run.

In: lowered files. Out: for each launch program, a function that calls the emitted launcher with the numbers of a call
and gives back its error and the recorded launch. Kernels keep their heads and lose their bodies; functions for the
device are left out, so that hundreds of kernels compile in seconds.
Promises: the values of a launch are converted to the kernel's own parameter types by C++, as `<<<…>>>` does it.
"""

from __future__ import annotations

import ctypes
import itertools
import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from py2cu.build import toolchain
from py2cu.dtypes import C128, Kind
from py2cu.ir.abi.launch import SCATTERED, LaunchProgram
from py2cu.ir.abi.parameters import Parameter
from py2cu.ir.abi.signature import Signature
from py2cu.ir.types import ArrayType, ElementType
from py2cu.targets.cxx.instances import constant_text
from py2cu.targets.cxx.views import with_values
from py2cu.targets.lowered import Lowered
from py2cu.translation import Artifacts, CallTranslation, TargetName
from tests.support.compilers import torch_headers
from tests.support.libraries import dimensions
from tests.widths.narrow import chunks
from tests.widths.tokens import Token, code, join, tokenize

MOST_ARGUMENTS: Final = 256
_PRELUDE: Final = """
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <optional>
#include <type_traits>
#include <variant>
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>
#define __global__ static
#define __device__
#define __host__
#define __launch_bounds__(...)
#define EXPORTED extern "C" __attribute__((visibility("default")))
namespace cuda::std { using ::std::complex; }
using __half = c10::Half;
using __nv_bfloat16 = c10::BFloat16;
using cudaStream_t = void*;
using cudaError_t = int;
constexpr cudaError_t cudaSuccess = 0, cudaErrorInvalidConfiguration = 9;
constexpr int cudaFuncAttributeMaxDynamicSharedMemorySize = 8;
struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};
static cudaError_t cudaGetLastError() { return cudaSuccess; }
template <typename Kernel>
static cudaError_t cudaFuncSetAttribute(Kernel*, int, int) { return cudaSuccess; }

struct Launch {
    const void* kernel;
    int64_t launches, shape[6], shared, count, sizes[MOST_ARGUMENTS];
    unsigned char values[MOST_ARGUMENTS][16];
};
EXPORTED Launch launch;
Launch launch;

template <typename... Parameters>
static const void* address_of(void (*kernel)(Parameters...)) { return reinterpret_cast<const void*>(kernel); }

template <typename Value>
static void store(const Value& value)
{
    static_assert(sizeof value <= 16);
    std::memcpy(launch.values[launch.count], &value, sizeof value);
    launch.sizes[launch.count++] = sizeof value;
}

template <typename... Parameters>
struct Launched {
    const void* kernel;
    dim3 grid, block;
    size_t shared;
    void operator()(Parameters... exact) const
    {
        launch.kernel = kernel;
        launch.launches += 1;
        const unsigned shape[] = {grid.x, grid.y, grid.z, block.x, block.y, block.z};
        std::copy(shape, shape + 6, launch.shape);
        launch.shared = shared;
        launch.count = 0;
        (store(exact), ...);
    }
};

template <typename... Parameters>
static Launched<Parameters...> launched(void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t shared)
{
    return {address_of(kernel), grid, block, shared};
}

template <typename... Parameters, typename... Arguments>
static cudaError_t launch_cooperatively(
    void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t shared, cudaStream_t, int64_t*, Arguments... arguments)
{
    launched(kernel, grid, block, shared)(arguments...);
    return cudaSuccess;
}

// An argument of a call: whether it is given, and an integer or an address, or one or two floats.
struct Slot {
    int64_t is_given, word;
    double parts[2];
};
template <typename T> static T* address(const Slot& slot) { return reinterpret_cast<T*>(slot.word); }
template <typename T> static T number(const Slot& slot)
{
    if constexpr (std::is_integral_v<T>) return static_cast<T>(slot.word);
    else if constexpr (std::is_floating_point_v<T>) return static_cast<T>(slot.parts[0]);
    else if constexpr (sizeof(T) == 2) return static_cast<T>(static_cast<float>(slot.parts[0]));
    else return T(slot.parts[0], slot.parts[1]);
}
template <typename T> static std::optional<T> optional(const Slot& slot)
{
    return slot.is_given ? std::optional<T>(number<T>(slot)) : std::nullopt;
}
""".replace("MOST_ARGUMENTS", str(MOST_ARGUMENTS))
_LAUNCH: Final = re.compile(r"(\w+(?:<[\w, <>:]+?>)?)<<<(\w+), (\w+), (\w+), stream>>>\(")


class Slot(ctypes.Structure):
    """An argument as the C functions take it."""

    _fields_ = (("is_given", ctypes.c_int64), ("word", ctypes.c_int64), ("parts", ctypes.c_double * 2))


class _Launch(ctypes.Structure):
    _fields_ = (
        ("kernel", ctypes.c_void_p),
        ("launches", ctypes.c_int64),
        ("shape", ctypes.c_int64 * 6),
        ("shared", ctypes.c_int64),
        ("count", ctypes.c_int64),
        ("sizes", ctypes.c_int64 * MOST_ARGUMENTS),
        ("values", (ctypes.c_char * 16) * MOST_ARGUMENTS),
    )


@dataclass(frozen=True, slots=True)
class Launch:
    """A launch as CUDA gets it: the kernel with its template arguments, grid and block, values as bytes."""

    kernel: str
    shape: tuple[int, ...]
    shared: int
    values: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Emitted:
    """The emitted launchers of one program, one set of template arguments."""

    signature: Signature
    program: LaunchProgram
    constexprs: tuple[int, ...]
    _library: ctypes.CDLL
    _instances: dict[int, str]
    _function: str  # the C function's name, without the suffix for an explicit grid

    def call(self, slots: Sequence[Slot], shape: Sequence[int] = ()) -> Launch | int | None:
        """The launch, None where nothing is launched, or the error. `shape`: an explicit grid and block."""
        record = _Launch.in_dll(self._library, "launch")
        record.launches = 0
        function = self._library[f"{self._function}{'_on_grid' * bool(shape)}"]
        error: int = function((Slot * max(len(slots), 1))(*slots), (ctypes.c_int64 * 6)(*shape))
        if error or not record.launches:
            return error or None
        assert record.launches == 1
        values = tuple(
            ctypes.string_at(ctypes.addressof(record.values[place]), record.sizes[place])
            for place in range(record.count)
        )
        return Launch(self._instances[record.kernel], tuple(record.shape), record.shared, values)


def kernel_name(
    program: LaunchProgram,
    values: tuple[int, ...],
    given: tuple[bool, ...],
    packs: tuple[int, ...] = (),
    *,
    is_wide: bool,
) -> str:
    """The instance of a kernel in C++."""
    return f"{program.symbol}_kernel{program.template_arguments(values, given, packs, is_wide=is_wide)}"


def names_of_arguments(signature: Signature) -> list[str]:
    """The parameters and dimensions that emitted launchers take, in order; the strides of arrays come behind them."""
    names = [p.name for p in signature.parameters]
    known = {dim.name for dim in signature.dims}
    taken = [name for name in names if name not in signature.constexprs]
    return taken + [name for name in dimensions(signature) if name in known and name not in names]


def strided_arrays(signature: Signature) -> list[str]:
    return [p.name for p in signature.parameters if p.name in signature.strided]


def build(files: Sequence[Lowered]) -> list[list[Emitted]]:
    """The launchers of the kernels of each file, which are compiled together."""
    programs = [list(_programs(each.for_calls(TargetName.CUDA))) for each in files]
    texts = [_PRELUDE]
    instances: list[list[str]] = []
    for number, (lowered, own) in enumerate(zip(files, programs, strict=True)):
        instances.append(list(dict.fromkeys(itertools.chain.from_iterable(map(_instances, own)))))
        texts += [f"namespace kernel_{number} {{", launchers(lowered.files((TargetName.CUDA,)).cuda)]
        for place, (signature, program, values) in enumerate(own):
            texts += _bridges(f"call_{number}_{place}", signature, program, values)
        addresses = ", ".join(f"address_of({expression})" for expression in instances[-1]) or "nullptr"
        texts.append(f"EXPORTED const void* instances_{number}[];\nconst void* instances_{number}[] = {{{addresses}}};")
        texts.append("}")
    library = _compiled("\n".join(texts))
    built: list[list[Emitted]] = []
    for number, own in enumerate(programs):
        addresses_of = (ctypes.c_void_p * max(len(instances[number]), 1)).in_dll(library, f"instances_{number}")
        named = {int(address or 0): name for address, name in zip(addresses_of, instances[number], strict=False)}
        assert len(named) == len(instances[number])
        built.append([Emitted(*each, library, named, f"call_{number}_{place}") for place, each in enumerate(own)])
    return built


_Program = tuple[Signature, LaunchProgram, tuple[int, ...]]


def _programs(translation: CallTranslation) -> Iterator[_Program]:
    """Each signature with its dtypes, its program, and values of template arguments."""
    for signature in translation.signatures:
        programs = translation.text(TargetName.CUDA).programs_of(signature.op)
        for instance, program in zip(signature.instances or (signature,), programs, strict=True):
            choices = itertools.product(*(constexpr.values for constexpr in signature.constexprs.values()))
            yield from ((instance, program, values) for values in choices)


def _packs(program: LaunchProgram) -> Iterator[tuple[int, ...]]:
    """The widths and counts of packs that launchers choose from."""
    if program.packs is None:
        yield ()
    else:
        yield from ((program.packs.width, program.packs.count), (1, SCATTERED), (1, 1))


def _instances(each: _Program) -> Iterator[str]:
    _, program, values = each
    for given in itertools.product((True, False), repeat=len(program.optional)):
        for is_wide in (False, True)[: 1 + program.has_index_type]:
            for packs in _packs(program):
                yield kernel_name(program, values, given, packs, is_wide=is_wide)


# --- the text -------------------------------------------------------------------------------------------------------


def launchers(artifacts: Artifacts) -> str:
    """What the emitted header and text have for the host, and the heads of the kernels."""
    text = f"{artifacts.header.text}\n{artifacts.kernel.text}"
    kept = "".join(_kept(chunk) for chunk in chunks(tokenize(text)))
    recorded = _LAUNCH.sub(r"launched(\1, \2, \3, \4)(", kept)
    assert "<<<" not in recorded, recorded
    return recorded


def _kept(chunk: Sequence[Token]) -> str:
    tokens = [token for token in chunk if token.kind != "directive"]
    words = [token.text for token in code(tokens)]
    head = words[: words.index("{")] if "{" in words else words
    if "__global__" in head:
        opening = next(place for place, token in enumerate(tokens) if token.text == "{")
        return join(tokens[:opening]) + "{}\n"
    is_of_device = ("__device__" in head and "__host__" not in head) or "__constant__" in head
    return "" if is_of_device or "launch_cooperatively" in head else join(tokens)


def _bridges(name: str, signature: Signature, program: LaunchProgram, values: tuple[int, ...]) -> Iterator[str]:
    """The C functions before one launcher: with the grid that it computes, and on an explicit one."""
    arguments = [_argument(signature, each, f"a[{place}]") for place, each in enumerate(names_of_arguments(signature))]
    axes = sum(len(signature.array_type(array).dims) for array in strided_arrays(signature))
    arguments += [f"number<int64_t>(a[{len(arguments) + axis}])" for axis in range(axes)]
    launcher = with_values(f"{signature.op}_launch", map(constant_text, values))
    last = ["nullptr"] * (1 + program.cooperative)
    for suffix, shape in (("", []), ("_on_grid", ["dim3(s[0], s[1], s[2])", "dim3(s[3], s[4], s[5])"])):
        if shape or program.size:
            call = f"{launcher}({', '.join([*arguments, *shape, *last])})"
            yield f"EXPORTED int {name}{suffix}(const Slot* a, const int64_t* s) {{ return {call}; }}"


def _argument(signature: Signature, name: str, slot: str) -> str:
    parameter = next((p for p in signature.parameters if p.name == name), None)
    if parameter is None:
        return f"number<int64_t>({slot})"
    if isinstance(parameter.type, ArrayType):
        return f"address<{parameter.type.dtype.c}>({slot})"
    return f"{'optional' if parameter.may_be_none else 'number'}<{_c_type(parameter)}>({slot})"


def _c_type(parameter: Parameter) -> str:
    """The type of a number in an emitted launcher."""
    type_ = parameter.type
    assert not isinstance(type_, ArrayType)
    if isinstance(type_, ElementType):
        return type_.dtype.c
    return {Kind.BOOL: "bool", Kind.INT: "int64_t", Kind.FLOAT: "double", Kind.COMPLEX: C128.c}[type_.kind]


def _compiled(text: str) -> ctypes.CDLL:
    with tempfile.TemporaryDirectory(prefix="py2cu-") as folder:
        source, library = Path(folder, "launchers.cpp"), Path(folder, "launchers.so")
        source.write_text(text, encoding="utf-8")
        flags = ["-std=c++17", "-O0", "-w", "-shared", "-fPIC", "-fvisibility=hidden", "-ffp-contract=off"]
        command = [str(toolchain.find_cxx()), *torch_headers(), *flags, str(source), "-o", str(library)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[:4000]
        return ctypes.CDLL(str(library))


def slot_of(value: Any, *, is_float: bool = False) -> Slot:
    """A value as the C functions take it: an address or an integer, or a number whose parts are floats."""
    if value is None:
        return Slot()
    if not is_float:
        return Slot(1, int(value))
    number = complex(value)
    return Slot(1, 0, (number.real, number.imag))
