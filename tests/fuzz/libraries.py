"""Many kernels in one shared library, without torch's binding: what makes tens of thousands of them affordable.

In: translations and a target. Out: a `Library`, whose functions run a kernel's own launcher, reached through a C
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
from typing import Any, Final

import torch

from py2cu.dtypes import C64, C128, DTYPES
from py2cu.runtime import toolchain
from py2cu.targets.cpu import DIALECT
from py2cu.translation import Artifacts, TargetName, Translation
from tests.compilers import torch_headers
from tests.emulator import emulate


class Device(enum.StrEnum):
    """Where kernels run: the CPU's text, CUDA's on a GPU, CUDA's on the CPU (`tests/emulator.py`)."""

    CPU = "cpu"
    CUDA = "cuda"
    EMULATED = "emulated"

    @property
    def targets(self) -> tuple[TargetName, ...]:
        """The texts that it needs."""
        return {Device.CPU: (TargetName.CPU,), Device.CUDA: (TargetName.CUDA,)}.get(self, tuple(TargetName))

    @property
    def memory(self) -> str:
        return "cuda" if self is Device.CUDA else "cpu"


class CompileFailure(Exception):
    """The compiler refused the text; `errors` holds the first for each kernel that it names, by its place."""

    def __init__(self, log: str) -> None:
        super().__init__(log)
        found = re.findall(r"^kernel_(\d+)\W.*?(error.*)", log, flags=re.MULTILINE)
        self.errors = {int(place): error for place, error in reversed(found)}


@dataclass(frozen=True, slots=True)
class Setting:
    """How kernels are built. `fma`: multiply-adds are rounded once, and results compared within what that changes."""

    device: Device
    sanitize: bool = False
    fma: bool = False


Run = Callable[[Mapping[str, Any]], None]


def _half(dtype: torch.dtype) -> Callable[[float], ctypes.c_int16]:
    """Its bits, since C has no such type to pass."""
    return lambda value: ctypes.c_int16(torch.tensor(value, dtype=dtype).view(torch.int16).item())


def _parts(part: Callable[[float], Any]) -> Callable[[complex], Any]:
    """A complex number, for which C++ has the two of its parts."""
    return lambda value: (part * 2)(value.real, value.imag)


_C: Final[Mapping[str, Callable[[Any], Any]]] = {
    "__half": _half(torch.float16), "c10::Half": _half(torch.float16),
    "__nv_bfloat16": _half(torch.bfloat16), "c10::BFloat16": _half(torch.bfloat16),
    "bool": ctypes.c_bool, "int": ctypes.c_int, "int64_t": ctypes.c_int64, "int32_t": ctypes.c_int32,
    "int16_t": ctypes.c_int16, "int8_t": ctypes.c_int8, "uint8_t": ctypes.c_uint8, "uint16_t": ctypes.c_uint16,
    "uint32_t": ctypes.c_uint32, "uint64_t": ctypes.c_uint64, "float": ctypes.c_float, "double": ctypes.c_double,
    C64.c: _parts(ctypes.c_float), DIALECT.spell(C64): _parts(ctypes.c_float),
    C128.c: _parts(ctypes.c_double), DIALECT.spell(C128): _parts(ctypes.c_double),
}  # fmt: skip
_SPELLINGS: Final = {getattr(torch, row.name): (row.c, DIALECT.spell(row)) for row in DTYPES}
_DECLARED: Final = re.compile(r"^(void|cudaError_t) (\w+_launch)\(\s*([^;]*?)\);", re.MULTILINE | re.DOTALL)
_INSTANTIATED: Final = re.compile(
    r"^template (void|cudaError_t) (\w+_launch<[^(]*>)\(\s*([^;]*?)\);", re.MULTILINE | re.DOTALL
)


@dataclass(frozen=True, slots=True)
class Launcher:
    """A kernel's launcher: its name and its parameters, each a C type and a name."""

    name: str
    parameters: tuple[tuple[str, str], ...]

    @classmethod
    def all_of(cls, texts: Artifacts, is_cuda: bool) -> tuple[Launcher, ...]:
        """The launchers that choose their own grid: one, or those of a template for all that it is instantiated for."""
        found = _INSTANTIATED.findall(texts.kernel.text) or _DECLARED.findall(texts.header.text)
        result = "cudaError_t" if is_cuda else "void"  # an emulated text has both
        return tuple(
            cls(name, _parameters(text))
            for returned, name, text in found
            if returned == result and "dim3 grid" not in text.lower()
        )

    def bridge(self, function: str, returns: bool) -> str:
        """The C function in front of it."""
        values = [f"*static_cast<{type_}*>(a[{place}])" for place, (type_, _) in enumerate(self.parameters)]
        call = f"{self.name}({', '.join([*values, 'nullptr'] if returns else values)})"
        body = f"return {call};" if returns else f"{call}; return 0;"
        return f'extern "C" __attribute__((visibility("default"))) int {function}(void** a) {{ {body} }}'

    def takes(self, arguments: Mapping[str, Any], constexprs: Sequence[str]) -> bool:
        """Whether it is for the dtypes and the template arguments, which are called `constexprs`, of `arguments`."""
        values = self.name.partition("<")[2].rstrip(">").split(", ")
        if any(str(arguments[name]).lower() != value for name, value in zip(constexprs, values, strict=False)):
            return False
        pointers = (
            (type_.removeprefix("const ").rstrip("* "), name) for type_, name in self.parameters if "*" in type_
        )
        return all(c_type in _SPELLINGS[arguments[name].dtype] for c_type, name in pointers)

    def pack(self, arguments: Mapping[str, Any]) -> list[Any]:
        """The arguments as C values."""
        return [
            ctypes.c_void_p(arguments[name].data_ptr()) if "*" in type_ else _C[type_](arguments[name])
            for type_, name in self.parameters
        ]


def _parameters(text: str) -> tuple[tuple[str, str], ...]:
    text = re.sub(r"(?<![:\w])complex<", "cuda::std::complex<", text)  # as it is called outside the text
    split = (parameter.strip().rsplit(" ", 1) for parameter in text.split(","))
    return tuple((type_, name) for type_, name in split if name != "stream")


def build(translations: Sequence[Translation], setting: Setting) -> list[Run]:
    """What runs each of `translations`, compiled together.

    Raises:
        CompileFailure: one of them, at least, is refused.
    """
    device = setting.device
    texts = [_artifacts(translation, device) for translation in translations]
    launchers = [Launcher.all_of(text, device is Device.CUDA) for text in texts]
    with tempfile.TemporaryDirectory(prefix="py2cu-fuzz-") as folder:
        source, library = Path(folder, "kernels.cu"), Path(folder, "kernels.so")
        source.write_text(_one_text(texts, launchers, device is Device.CUDA), encoding="utf-8")
        command = [*_compiler(setting), str(source), "-o", str(library)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise CompileFailure(done.stderr or done.stdout)
        loaded = ctypes.CDLL(str(library))
    return [
        _runner(
            {launcher: loaded[_bridge(number, place)] for place, launcher in enumerate(several)},
            [*translations[number].signatures[0].constexprs],
            device,
        )
        for number, several in enumerate(launchers)
    ]


def _bridge(number: int, place: int) -> str:
    """The name of the C function for one launcher of one kernel."""
    return f"run_{number}_{place}"


def _artifacts(translation: Translation, device: Device) -> Artifacts:
    whole = emulate(translation) if device is Device.EMULATED else translation
    return whole.texts[TargetName.CUDA if device is Device.CUDA else TargetName.CPU]


def _one_text(texts: Sequence[Artifacts], launchers: Sequence[tuple[Launcher, ...]], is_cuda: bool) -> str:
    """The includes first, then each kernel in a namespace of its own, its bridges with it."""
    includes: dict[str, None] = {}
    bodies: list[str] = []
    for number, text in enumerate(texts):
        bodies.append(f'#line 1 "kernel_{number}"\nnamespace kernel_{number} {{')
        for line in [*text.header.text.splitlines(), *text.kernel.text.splitlines()]:
            if line.startswith("#include <"):
                includes[line] = None
            elif not line.startswith(('#include "', "#pragma once")):
                bodies.append(line)
        for place, launcher in enumerate(launchers[number]):
            bodies.append(launcher.bridge(_bridge(number, place), is_cuda))
        bodies.append("}")
    return "\n".join([*includes, *bodies, ""])


def _compiler(setting: Setting) -> list[str]:
    """`-O1` halves the time. Shifts of negative numbers are left to compilers, which agree with C++20 about them."""
    if setting.device is Device.CUDA:
        flags = [*toolchain.gencode_flags(toolchain.gpu_architectures()), f"--fmad={str(setting.fma).lower()}"]
        return [str(toolchain.find_nvcc()), "-std=c++17", "-O1", *flags, "-shared", "-Xcompiler=-fPIC", "-w"]
    checks = ["-fsanitize=undefined", "-fno-sanitize=shift-base", "-fno-sanitize-recover=all"]
    contraction = ["-march=native", "-ffp-contract=fast"] if setting.fma else ["-ffp-contract=off"]
    flags = ["-std=c++17", "-O1", *contraction, "-fvisibility=hidden", "-w", "-shared", "-fPIC"]
    return [
        *(str(toolchain.find_cxx()), *torch_headers(), "-x", "c++"), *flags, *(checks if setting.sanitize else []),
    ]  # fmt: skip


def _runner(functions: Mapping[Launcher, Any], constexprs: Sequence[str], device: Device) -> Run:
    def run(arguments: Mapping[str, Any]) -> None:
        launcher, function = next(row for row in functions.items() if row[0].takes(arguments, constexprs))
        values = launcher.pack(arguments)
        error = function((ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values)))
        if error:
            raise RuntimeError(f"the launch failed: error {error}")
        if device is Device.CUDA:
            torch.cuda.synchronize()

    return run
