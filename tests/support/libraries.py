"""Many kernels in one shared library, without torch's binding: what makes tens of thousands of them affordable.

In: translations and where they run. Out: what runs each of their kernels: its own launcher, reached through a C
function that takes the addresses of all arguments. The texts are those that a user gets, a namespace each.
"""

from __future__ import annotations

import ctypes
import enum
import re
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final

from py2cu.build import toolchain
from py2cu.dtypes import C64, C128, DTYPES
from py2cu.ir.abi.dims import bind_dims
from py2cu.ir.abi.launch import FEW_ELEMENTS
from py2cu.ir.abi.signature import Signature
from py2cu.ir.types import ArrayType
from py2cu.ir.visit import names_in
from py2cu.targets.cpu.target import DIALECT
from py2cu.translation import Artifacts, TargetName, Translation
from tests.support.compilers import torch_headers
from tests.support.emulator import emulate
from tests.widths.narrow import narrow

if TYPE_CHECKING:
    import torch


class Device(enum.StrEnum):
    """Where kernels run: the CPU text at `-O1`, the CPU text with the flags of a call, the CUDA text on a GPU, the CUDA
    text on the CPU (`tests/support/emulator.py`), and there with integers of a few bits (`tests/widths`).
    """

    CPU = "cpu"
    OPTIMISED = "optimised"
    CUDA = "cuda"
    EMULATED = "emulated"
    WIDTHS = "widths"

    @property
    def targets(self) -> tuple[TargetName, ...]:
        """The texts that it needs."""
        on_cpu = (TargetName.CPU,)
        one = {Device.CPU: on_cpu, Device.OPTIMISED: on_cpu, Device.CUDA: (TargetName.CUDA,)}
        return one.get(self, tuple(TargetName))

    @property
    def memory(self) -> str:
        return "cuda" if self is Device.CUDA else "cpu"


class CompileFailure(Exception):
    """The compiler refused the text; `errors` holds the first for each translation that it names, by its place."""

    def __init__(self, log: str) -> None:
        super().__init__(log)
        found = re.findall(r"^kernel_(\d+)\W.*?(error.*)", log, flags=re.MULTILINE)
        self.errors = {int(place): error for place, error in reversed(found)}


# Undefined behaviour is told of in lines on stderr, or ends the process; then shifts of negative numbers are left to
# compilers, which agree with C++20 about them.
REPORTS: Final = ("-fsanitize=undefined",)
STOPS: Final = (*REPORTS, "-fno-sanitize=shift-base", "-fno-sanitize-recover=all")


@dataclass(frozen=True, slots=True)
class Setting:
    """How kernels are built. `checks`: `REPORTS` or `STOPS`, on a CPU.

    `fma`: multiply-adds are rounded once, and results compared within what that changes. `quick`: the CPU's text is
    compiled at `-O0`.
    """

    device: Device
    checks: tuple[str, ...] = ()
    fma: bool = False
    quick: bool = False


Run = Callable[[Mapping[str, Any]], None]


@dataclass(frozen=True, slots=True)
class Checked:
    """What `check_kernel` asks for: Python, signature, and a way to run the compiled code."""

    python: FunctionType
    signature: Signature
    launch: Run

    def run(self, target_device: str, arguments: Mapping[str, Any]) -> None:
        self.launch(arguments)


def _half(dtype: str) -> Callable[[float], ctypes.c_int16]:
    """Its bits, since C has no such type to pass."""

    def pack(value: float) -> ctypes.c_int16:
        import torch

        return ctypes.c_int16(torch.tensor(value, dtype=getattr(torch, dtype)).view(torch.int16).item())

    return pack


def _parts(part: Callable[[float], Any]) -> Callable[[complex], Any]:
    """A complex number, for which C++ has the two of its parts."""
    return lambda value: (part * 2)(value.real, value.imag)


_C: Final[Mapping[str, Callable[[Any], Any]]] = {
    "__half": _half("float16"), "c10::Half": _half("float16"),
    "__nv_bfloat16": _half("bfloat16"), "c10::BFloat16": _half("bfloat16"),
    "bool": ctypes.c_bool, "int": ctypes.c_int, "int64_t": ctypes.c_int64, "int32_t": ctypes.c_int32,
    "int16_t": ctypes.c_int16, "int8_t": ctypes.c_int8, "uint8_t": ctypes.c_uint8, "uint16_t": ctypes.c_uint16,
    "uint32_t": ctypes.c_uint32, "uint64_t": ctypes.c_uint64, "float": ctypes.c_float, "double": ctypes.c_double,
    C64.c: _parts(ctypes.c_float), DIALECT.spell(C64): _parts(ctypes.c_float),
    C128.c: _parts(ctypes.c_double), DIALECT.spell(C128): _parts(ctypes.c_double),
}  # fmt: skip
_SPELLINGS: Final = {f"torch.{row.name}": (row.c, DIALECT.spell(row)) for row in DTYPES}
_LAUNCHER: Final = r"(void|cudaError_t) (\w+)_launch(|<[^(]*>)\(\s*([^;]*?)\)"  # result, name, values, parameters
_DECLARED: Final = re.compile(rf"(?<!>\n)^{_LAUNCHER};", re.MULTILINE | re.DOTALL)  # no template
_LARGE: Final = "parts > 1 && ((sizes > 32768) || ...)"
_FEW: Final = f"<= {FEW_ELEMENTS})  // too few"
_GUARDED: Final = (
    "try {{ {call}; return 0; }} "
    "catch (const std::exception& error) {{ std::strncpy(raised, error.what(), sizeof raised - 1); return 1; }} "
    "catch (...) {{ return 1; }}"
)
_RAISED: Final = """
#include <cstring>
#include <exception>
extern "C" __attribute__((visibility("default"))) char raised[256];
char raised[256];
"""
_SPECIALISED: Final = re.compile(f"^template <>\n{_LAUNCHER}\n", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Launcher:
    """A kernel's launcher: its name without the `_launch`, a template's values in brackets, parameters' C types."""

    name: str
    values: str
    types: tuple[str, ...]

    @classmethod
    def all_of(cls, texts: Artifacts, is_cuda: bool) -> tuple[Launcher, ...]:
        """The launchers that choose their own grid: of a template, its specialisations."""
        header = re.sub(r" /\* = .*? \*/|^//.*\n", "", texts.header.text, flags=re.MULTILINE)  # defaults, docstrings
        found = _DECLARED.findall(header) + _SPECIALISED.findall(texts.kernel.text)
        result = "cudaError_t" if is_cuda else "void"  # an emulated text has both
        return tuple(
            cls(name, chosen, _types(text))
            for returned, name, chosen, text in found
            if returned == result and "dim3 grid" not in text.lower()
        )

    def bridge(self, function: str, is_cuda: bool) -> str:
        """The C function in front of it."""
        values = [_argument(type_, f"a[{place}]") for place, type_ in enumerate(self.types)]
        call = f"{self.name}_launch{self.values}({', '.join([*values, 'nullptr'] if is_cuda else values)})"
        body = f"return {call};" if is_cuda else _GUARDED.format(call=call)
        return f'extern "C" __attribute__((visibility("default"))) int {function}(void** a) {{ {body} }}'

    def takes(self, values: Sequence[Any], constexprs: Sequence[int]) -> bool:
        """Whether it is for the dtypes of `values` and for the template arguments `constexprs`."""
        chosen = self.values.strip("<>").split(", ")
        if any(str(value).lower() != text for value, text in zip(constexprs, chosen, strict=False)):
            return False
        pointers = ((type_, value) for type_, value in zip(self.types, values, strict=True) if "*" in type_)
        return all(
            value is None or type_.removeprefix("const ").rstrip("* ") in _SPELLINGS[str(value.dtype)]
            for type_, value in pointers
        )

    def pack(self, values: Sequence[Any]) -> list[Any]:
        """`values` as C has them; None for a number that a call leaves out."""
        return [_packed(type_, value) for type_, value in zip(self.types, values, strict=True)]


_OPTIONAL: Final = re.compile(r"std::optional<(.*)>")


def _argument(type_: str, address: str) -> str:
    """The argument of this type at an address, which is null for a number that a call leaves out."""
    if (optional := _OPTIONAL.fullmatch(type_)) is None:
        return f"*static_cast<{type_}*>({address})"
    return f"{address} ? {type_}(*static_cast<{optional[1]}*>({address})) : std::nullopt"


def _packed(type_: str, value: Any) -> Any:
    if "*" in type_:
        return _pointer(value)
    if (optional := _OPTIONAL.fullmatch(type_)) is None:
        return _C[type_](value)
    return None if value is None else _C[optional[1]](value)


def _pointer(array: torch.Tensor | None) -> ctypes.c_void_p:
    """Null only for an array that a call leaves out: an empty one, which torch gives no memory, is at some address."""
    return ctypes.c_void_p() if array is None else ctypes.c_void_p(array.data_ptr() or 1)


def _types(text: str) -> tuple[str, ...]:
    text = re.sub(r"(?<![:\w])complex<", "cuda::std::complex<", text)  # as it is called outside the text
    split = (parameter.strip().rsplit(" ", 1) for parameter in text.split(","))
    return tuple(type_ for type_, name in split if name != "stream")


def build(translations: Sequence[Translation], setting: Setting) -> list[dict[str, Run]]:
    """What runs the kernels of each of `translations`, by their ops; all are compiled together.

    Kernels that only a call says the grid of are left out.

    Raises:
        CompileFailure: one of them, at least, is refused.
    """
    is_cuda = setting.device is Device.CUDA
    texts = [_artifacts(translation, setting.device) for translation in translations]
    launchers = [Launcher.all_of(text, is_cuda) for text in texts]
    with tempfile.TemporaryDirectory(prefix="py2cu-") as folder:
        source, library = Path(folder, "kernels.cu"), Path(folder, "kernels.so")
        source.write_text(_one_text(texts, launchers, is_cuda), encoding="utf-8")
        command = [*_compiler(setting), str(source), "-o", str(library)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise CompileFailure(done.stderr or done.stdout)
        loaded = ctypes.CDLL(str(library))
    runs: list[dict[str, Run]] = []
    for number, translation in enumerate(translations):
        functions = {launcher: loaded[_bridge(number, place)] for place, launcher in enumerate(launchers[number])}
        runs.append(
            {
                signature.op: _runner(signature, functions, loaded, is_cuda)
                for signature in translation.signatures
                if any(launcher.name == signature.op for launcher in functions)
            }
        )
    return runs


def _bridge(number: int, place: int) -> str:
    """The name of the C function for one launcher of one translation."""
    return f"run_{number}_{place}"


def _artifacts(translation: Translation, device: Device) -> Artifacts:
    whole = {Device.EMULATED: emulate, Device.WIDTHS: narrow}.get(device, lambda same: same)(translation)
    return whole.texts[TargetName.CUDA if device is Device.CUDA else TargetName.CPU]


def _one_text(texts: Sequence[Artifacts], launchers: Sequence[tuple[Launcher, ...]], is_cuda: bool) -> str:
    """The includes first, then each translation in a namespace of its own, its bridges with it."""
    includes: dict[str, None] = {}
    bodies: list[str] = []
    for number, text in enumerate(texts):
        bodies.append(f'#line 1 "kernel_{number}.{text.name}"\nnamespace kernel_{number} {{')
        for line in [*text.header.text.splitlines(), *text.kernel.text.splitlines()]:
            if line.startswith("#include <"):
                includes[line] = None
            elif not line.startswith(('#include "', "#pragma once")):
                # Small launches start threads and take packs, too.
                bodies.append(line.replace(_LARGE, "parts > 1").replace(_FEW, "<= 0)  // too few"))
        for place, launcher in enumerate(launchers[number]):
            bodies.append(launcher.bridge(_bridge(number, place), is_cuda))
        bodies.append("}")
    return "\n".join([*includes, "" if is_cuda else _RAISED, *bodies, ""])


def _compiler(setting: Setting) -> list[str]:
    """`-O1` takes half of the time of a call's flags."""
    if setting.device is Device.CUDA:
        flags = [*toolchain.gencode_flags(toolchain.gpu_architectures()), f"--fmad={str(setting.fma).lower()}"]
        return [str(toolchain.find_nvcc()), "-std=c++17", "-O1", *flags, "-shared", "-Xcompiler=-fPIC", "-w"]
    shared = ["-std=c++17", "-fvisibility=hidden", "-w", "-shared", "-fPIC"]
    if setting.device is Device.OPTIMISED:
        return [str(toolchain.find_cxx()), *torch_headers(), *toolchain.cpu_flags(), *shared]
    contraction = ["-march=native", "-ffp-contract=fast"] if setting.fma else ["-ffp-contract=off"]
    is_checked = setting.device is Device.WIDTHS or setting.checks
    level = "-O0" if is_checked or setting.quick else "-O1"  # compilers take long to inline checks
    flags = ["-x", "c++", level, *contraction, *shared]
    return [str(toolchain.find_cxx()), *torch_headers(), *flags, *setting.checks]


def dimensions(signature: Signature) -> tuple[str, ...]:
    """Every dimension in the order in which a launcher takes them."""
    extents = [index.extent for index in signature.indices]
    extents += [dim for p in signature.arrays if isinstance(p.type, ArrayType) for dim in p.type.dims]
    extents += (*(signature.size or ()), *signature.block)
    return tuple(dict.fromkeys(name for extent in extents for name in names_in(extent)))


def _strides(type_: ArrayType, tensor: torch.Tensor | None) -> list[int]:
    """The strides as a binding passes them: 0 on an axis without neighbours, and for an array that is None."""
    if tensor is None or not tensor.numel():
        return [0] * len(type_.dims)
    return [0 if extent == 1 else stride for extent, stride in zip(tensor.shape, tensor.stride(), strict=True)]


def _runner(signature: Signature, functions: Mapping[Launcher, Any], library: ctypes.CDLL, is_cuda: bool) -> Run:
    """What finds the launcher for some arguments, and calls it."""
    raised = ctypes.create_string_buffer(1) if is_cuda else (ctypes.c_char * 256).in_dll(library, "raised")
    own = {launcher: function for launcher, function in functions.items() if launcher.name == signature.op}
    names = [parameter.name for parameter in signature.parameters]
    taken = [name for name in names if name not in signature.constexprs]
    strided = [name for name in names if name in signature.strided]
    found = {dim.name for dim in signature.dims}
    taken += [name for name in dimensions(signature) if name in found and name not in names]

    def run(arguments: Mapping[str, Any]) -> None:
        left_out = dict.fromkeys(p.name for p in signature.parameters if p.may_be_none)
        known = {**left_out, **bind_dims(signature, arguments), **arguments}
        values = [known[name] for name in taken]
        values += [stride for name in strided for stride in _strides(signature.array_type(name), known[name])]
        constexprs = [known[name] for name in signature.constexprs]
        launcher, function = next(row for row in own.items() if row[0].takes(values, constexprs))
        packed = launcher.pack(values)
        addresses = (None if value is None else ctypes.addressof(value) for value in packed)
        error = function((ctypes.c_void_p * len(packed))(*addresses))
        if error:
            raise RuntimeError(f"the launch failed: {raised.value.decode() or f'error {error}'}")
        if is_cuda:
            import torch

            torch.cuda.synchronize()

    return run
