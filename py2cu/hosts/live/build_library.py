"""The library of host functions, for calls in this process.

In: the text of `NAME_host.cpp` and the kernels that it calls. Out: how it is built, and a way to say which operators of
`py2cu::` its kernels are: an edited kernel compiles no host function again.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Final

from py2cu.build.library import Build, cxx_standard
from py2cu.build.store import key_of
from py2cu.translation import Text

_FLAGS: Final = ("-fvisibility=hidden", "-O1")
_PRELUDE: Final = """\
#include <atomic>
#include <cstring>

namespace {{
struct KernelName {{
    const char* kernel;
    std::atomic<const char*> op;
}};
KernelName kernel_names[] = {{{names}}};

const char* operator_of(const char* kernel)
{{
    for (const auto& each : kernel_names)
        if (!std::strcmp(each.kernel, kernel)) return each.op;
    return "";
}}
}}  // namespace

extern "C" __attribute__((visibility("default"))) void py2cu_name_kernel(const char* kernel, const char* op)
{{
    for (auto& each : kernel_names)
        if (!std::strcmp(each.kernel, kernel) && std::strcmp(each.op, op)) each.op = ::strdup(op);
}}
#define KERNEL(name) operator_of(name)
"""


def plan_host(text: Text, kernels: tuple[str, ...], instance: int = 0) -> Build:
    """The build of a text that calls these kernels, whose names differ between values of `instance`."""
    import torch

    names = ", ".join(f'{{"{kernel}", ""}}' for kernel in kernels)
    prelude = _PRELUDE.format(names=names) if kernels else ""
    flags = (cxx_standard(torch.__version__), *_FLAGS)
    key = key_of(torch.__version__, "host", instance, text.code, prelude, flags)
    return Build(key, "", f"py2cu_host_{key[:16]}", None, None, text, prelude, flags)


def name_kernels(library: ctypes.CDLL, operators: Mapping[str, str]) -> None:
    """Say which operator each kernel is from now on: by its name in the text, `py2cu::grey_0123456789abcdef`."""
    for kernel, operator in operators.items():
        library.py2cu_name_kernel(kernel.encode(), operator.encode())
