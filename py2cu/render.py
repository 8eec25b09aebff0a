"""Views → text: the Jinja environment, and which template makes which file.

The only module that imports Jinja. A line that says Python carries its number behind a separator until the text is
whole; then text and line map part.
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import Final

from jinja2 import Environment, FileSystemBytecodeCache, FileSystemLoader, StrictUndefined
from jinja2.bccache import Bucket

from py2cu.builtins import ROWS
from py2cu.folders import location
from py2cu.ir.kernel import Family
from py2cu.targets import binding, cpu, cpu_helpers, cuda, cuda_helpers
from py2cu.targets.arguments import wrapped
from py2cu.targets.helpers import helper_text
from py2cu.targets.overloads import with_own_overloads
from py2cu.targets.spell_statements import Line
from py2cu.targets.view import KernelView, group
from py2cu.targets.wrap_lines import wrap_line
from py2cu.translation import Artifacts, TargetName, Text

_ORIGIN: Final = "\x1f"  # no source line that can be printed holds it
# Standard headers that a text needs, by what it mentions.
_MATH: Final = {c for row in ROWS.values() for c in row.spelling.values()} - {"min", "max"} | {
    "fmod",
    "floor",
    "copysign",
    "fabs",
    "sqrt",
}
_INCLUDES: Final = {
    "atomic": r"std::(atomic<|atomic_thread_fence|memory_order_)",
    "functional": r"std::function<",
    "list": r"std::list<",
    "memory": r"std::unique_ptr<",
    "ucontext.h": r"\bucontext_t\b",
    "vector": r"std::vector<",
    "condition_variable": r"std::condition_variable\b",
    "cooperative_groups.h": r"\bcooperative_groups::",
    "mutex": r"std::mutex\b",
    "thread": r"std::(thread|this_thread)\b",
    "algorithm": r"std::(max|min)\b",
    "stdexcept": r"std::runtime_error\b",
    "string": r"std::(string|to_string)\b",
    "exception": r"std::exception_ptr\b",
    "initializer_list": r"std::initializer_list<",
    "cassert": r"\bassert\(",
    "cmath": rf"\b(INFINITY|NAN)\b|\b({'|'.join(sorted(_MATH))})\(",
    "cstdint": r"_t\b",
    "complex": r"(?<!cuda::)\bstd::complex<",
    "cstring": r"\bmemcpy\(",
    "cstdio": r"\bprintf\(",
    "cuda_bf16.h": r"\b__nv_bfloat16\b",
    "cuda/std/complex": r"(?<!(\w|:))complex<|\bcuda::std::complex<",
    "cuda_fp16.h": r"\b__half\b",
    "torch/headeronly/util/BFloat16.h": r"\bc10::BFloat16\b",
    "torch/headeronly/util/Half.h": r"\bc10::Half\b",
    "type_traits": r"std::(make_unsigned_t|conditional_t|is_(integral|signed|floating_point|same)_v)",
}


def template_folder() -> Path:
    """Where the templates lie: in the wheel beside this module, in a checkout beside the package."""
    packaged = Path(__file__).with_name("_templates")
    return packaged if packaged.is_dir() else Path(__file__).parent.with_name("templates")


@functools.cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(template_folder()),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
        bytecode_cache=_CompiledTemplates(str(location() / "templates")),
    )
    environment.globals |= {"wrapped": wrapped, "wrapped_pragma": _wrapped_pragma, "needed": _needed}
    environment.filters |= {
        "mapped": _mapped,
        "is_zero": _is_zero,
        "operand": _operand,
        "quotient": _quotient,
        "wrapped_condition": _wrapped_condition,
    }
    return environment


class _CompiledTemplates(FileSystemBytecodeCache):
    """Templates as bytecode, kept from run to run where the disk lets them: compiling them takes longer than
    translating a kernel.
    """

    def dump_bytecode(self, bucket: Bucket) -> None:
        with contextlib.suppress(OSError):
            Path(self.directory).mkdir(parents=True, exist_ok=True)
            super().dump_bytecode(bucket)


def render(name: str, source: str, families: tuple[Family, ...], target: TargetName) -> Artifacts:
    """The three files of `target` for these kernels; `name` is their stem, `source` the Python file they came from."""
    make = _render_cuda if target is TargetName.CUDA else _render_cpu
    return make(name, source, families)


def _render_cuda(name: str, source: str, families: tuple[Family, ...]) -> Artifacts:
    families = with_own_overloads(families, cuda.DIALECT)
    groups = tuple(group(family, cuda.view, cuda.DIALECT) for family in families)
    views = tuple(chain.from_iterable(groups))
    common: dict[str, object] = {"name": name, "source": source, "kernels": views, "header": f"{name}.h"}
    shared = _shared(views, "__device__ inline", "__constant__ const", cuda_helpers.HELPERS)
    return Artifacts(
        name,
        TargetName.CUDA,
        _text(f"{name}.cu", "cuda/kernel.cu.j2", common | shared),
        _text(f"{name}.h", "cuda/launcher.h.j2", common),
        _binding_text(f"{name}.cpp", common, families, groups, is_cuda=True),
    )


def _render_cpu(name: str, source: str, families: tuple[Family, ...]) -> Artifacts:
    families = with_own_overloads(families, cpu.DIALECT)
    groups = tuple(group(family, cpu.view, cpu.DIALECT) for family in families)
    views = tuple(chain.from_iterable(groups))
    common: dict[str, object] = {"name": name, "source": source, "kernels": views, "header": f"{name}_cpu.h"}
    shared = _shared(views, "static inline", "const", cpu_helpers.HELPERS)
    return Artifacts(
        name,
        TargetName.CPU,
        _text(
            f"{name}_cpu.cpp",
            "cpu/kernel.cpp.j2",
            common | shared,
        ),
        _text(f"{name}_cpu.h", "cpu/launcher.h.j2", common),
        _binding_text(f"{name}_cpu_binding.cpp", common, families, groups, is_cuda=False),
    )


def _shared(views: tuple[KernelView, ...], function: str, table: str, own: Mapping[str, str]) -> dict[str, object]:
    """What the kernels of a file call and look up, each once; `function` and `table` go before declarations.

    `own` are helpers of the target.
    """
    helpers = dict.fromkeys(name for view in views for name in view.helpers)
    tables = dict.fromkeys(text for view in views for text in view.tables)
    functions = dict.fromkeys(function for view in views for function in view.functions)
    structs = dict.fromkeys(called.struct for called in functions if called.struct is not None)
    return {
        "helpers": [helper_text(name, function, own) for name in helpers],
        "tables": ["\n".join(wrap_line(f"{table} {text};")) for text in tables],
        "structs": list(structs),
        "functions": list(functions),
    }


def _binding_text(
    file: str,
    common: Mapping[str, object],
    families: tuple[Family, ...],
    groups: tuple[tuple[KernelView, ...], ...],
    is_cuda: bool,
) -> Text:
    dialect = cuda.DIALECT if is_cuda else cpu.DIALECT
    views = tuple(binding.view(*both, dialect) for both in zip(families, groups, strict=True))
    facts = {
        "kernels": views,
        "is_cuda": is_cuda,
        "device": "cuda" if is_cuda else "cpu",
        "device_text": "a CUDA device" if is_cuda else "the CPU",
        "dim_type": "dim3" if is_cuda else "Dim3",
        "is_generic": any(family[0].variables for family in families),
        "uses_rows": any(array.row for view in views for array in (*view.given, *view.made)),
        "says_nonfinite": any(re.search(r"\b(INFINITY|NAN)\b", text) for view in views for text in view.numbers),
        "fills_whole": any(array.is_filled_whole for view in views for array in view.made),
        "uses_alignment": any(array.is_aligned for view in views for array in (*view.given, *view.made)),
        "uses_overlap": any(view.given_overlaps or view.made_overlaps for view in views),
    }
    return _text(file, "binding/binding.cpp.j2", {**common, **facts})


def _text(file: str, template: str, facts: Mapping[str, object]) -> Text:
    """A rendered file and its line map, from lines that end in their origin."""
    rendered = _environment().get_template(template).render(facts)
    lines, origins = [], []
    for line in rendered.split("\n"):
        text, _, origin = line.partition(_ORIGIN)
        lines.append(text.rstrip())
        origins.append(int(origin or 0))
    return Text(file, "\n".join(lines), tuple(origins))


# --- filters ---


def _mapped(line: Line) -> str:
    return f"{line.text}{_ORIGIN}{line.origin}" if line.origin else line.text


def _needed(body: str) -> list[str]:
    """The headers that a text needs: what mentions one is a name, perhaps with the bracket behind it."""
    words = "\n".join(set(re.findall(r"[\w:]+[(<]?", body)))
    return sorted(header for header, mention in _INCLUDES.items() if re.search(mention, words))


def _operand(extent: str) -> str:
    return extent if re.fullmatch(r"\w+|\w+( \* \w+)+", extent) else f"({extent})"


def _is_zero(extent: str) -> str:
    binds_weaker = re.search(r"[?&|^<>=]", extent)
    return f"({extent}) == 0" if binds_weaker else f"{extent} == 0"


def _wrapped_pragma(*parts: str) -> str:
    """A directive, on as many lines as it needs."""
    line = " ".join(part for part in parts if part)
    return " \\\n".join(wrap_line(line))


def _wrapped_condition(condition: str) -> str:
    """`    if (…)`, on as many lines as it needs."""
    return "\n".join(wrap_line(f"    if ({condition})"))


def _quotient(extent: str, divisor: str) -> str:
    """Ceiling division."""
    return f"({extent} + {divisor} - 1) / {divisor}"
