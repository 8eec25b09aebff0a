"""No kernel of the cases runs into undefined behaviour, whatever it is given that its Python can do.

The CPU text of all of them is built once with the undefined-behaviour sanitizer, and run on tame and on extreme values.
"""

from __future__ import annotations

import ctypes
import re
import subprocess
from collections.abc import Mapping

import pytest

from py2cu.ir.signature import Signature
from py2cu.kernels import Kernel
from py2cu.translation import TargetName
from tests.compilers import gxx, torch_headers
from tests.emulator import LAUNCHER
from tests.test_kernel_cases import CASES, import_kernels, in_one_file, read_case, signature_of, translate

torch = pytest.importorskip("torch")

from py2cu.runtime.inputs import Case, choose_sizes, make_case  # noqa: E402
from py2cu.runtime.simulate import SimulationError, bind_dims, simulate  # noqa: E402

C_TYPES = {
    "bool": ctypes.c_bool, "int8_t": ctypes.c_int8, "uint8_t": ctypes.c_uint8, "int16_t": ctypes.c_int16,
    "uint16_t": ctypes.c_uint16, "int32_t": ctypes.c_int32, "uint32_t": ctypes.c_uint32, "int64_t": ctypes.c_int64,
    "uint64_t": ctypes.c_uint64, "float": ctypes.c_float, "double": ctypes.c_double,
}  # fmt: skip
FLAVOURS = ("tame", "random", "extreme", "non-finite")
SANITIZE = ("-fsanitize=undefined", "-fno-sanitize=vptr", "-O1", "-std=c++17", "-shared", "-fPIC", "-x", "c++")


def test_cases_have_no_undefined_behaviour(tmp_path, capfd):
    parameters: dict[str, list[str]] = {}
    text = [in_one_file(TargetName.CPU), 'extern "C" {']
    for path in CASES:
        texts = translate(read_case(path)).texts
        header = texts[TargetName.CPU].header.text if TargetName.CPU in texts else ""
        for template, launcher, declared in LAUNCHER.findall(header):
            if (
                not template
                and "Dim3 grid" not in declared
                and not re.search(r"(c10::\w+|std::complex<\w+>) \w", declared)
            ):
                symbol = f"{path.stem}__{launcher.removesuffix('_launch')}"
                parameters[symbol] = declared.split(",")
                names = ", ".join(parameter.split()[-1] for parameter in parameters[symbol])
                text.append(f"void {symbol}({declared}) {{ case_{path.stem}::{launcher}({names}); }}")
    library = sanitized("\n".join([*text, "}", ""]), tmp_path)

    for path in CASES:
        case = read_case(path)
        translation = translate(case)
        if TargetName.CPU not in translation.texts:
            continue
        for kernel in import_kernels(case, tmp_path):
            signature = signature_of(kernel, translation)
            symbol = f"{path.stem}__{signature.op}"
            for invented in harmless(kernel, signature) if symbol in parameters else ():
                run(getattr(library, symbol), parameters[symbol], signature, invented)

    reports = [line for line in capfd.readouterr().err.splitlines() if "runtime error" in line]
    assert reports == []


def sanitized(text: str, place) -> ctypes.CDLL:
    source, library = place / "cases.cpp", place / "cases.so"
    source.write_text(text, encoding="utf-8")
    subprocess.run([gxx(), *SANITIZE, *torch_headers(), str(source), "-o", str(library)], check=True)
    return ctypes.CDLL(str(library))


def harmless(kernel: Kernel, signature: Signature) -> list[Case]:
    """Invented calls in which the Python raises nothing and counts no index from the end."""
    sizes = choose_sizes(signature, 2)
    found = []
    for seed, values in enumerate(FLAVOURS):
        case = make_case(signature, sizes, values, seed)
        if case is None:
            continue
        clones = {n: v.clone() if isinstance(v, torch.Tensor) else v for n, v in case.arguments.items()}
        try:
            report = simulate(kernel.python, signature, clones, seconds=2.0)
        except (SimulationError, ValueError):
            continue
        if not any("negative index" in finding.message for finding in report.findings):
            found.append(case)
    return found


def run(function, parameters: list[str], signature: Signature, case: Case) -> None:
    names = [parameter.name for parameter in signature.parameters]
    known: Mapping[str, object] = {**bind_dims(signature, case.arguments), **case.arguments}
    rest = [dim.name for dim in signature.dims if dim.name not in names]
    values = []
    for name, parameter in zip([*names, *rest], parameters, strict=True):
        value = known[name]
        if isinstance(value, torch.Tensor):
            values.append(ctypes.c_void_p(value.data_ptr()))
        else:
            values.append(C_TYPES[parameter.split()[0]](value))
    function(*values)
