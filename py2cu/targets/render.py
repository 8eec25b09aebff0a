"""Renders views to text with Jinja, and chooses the template of each file.

The only module that imports Jinja. While a text is rendered, a line that stems from Python carries the number of its
Python line behind a separator; afterwards these numbers become the line map.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from pathlib import Path
from typing import Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from py2cu import ir
from py2cu.ir.abi.launch import LaunchProgram
from py2cu.ir.abi.signature import Signature
from py2cu.ir.rewrite import with_fields
from py2cu.targets.cpu import target as cpu
from py2cu.targets.cpu.helpers import HELPERS_OF_CPU
from py2cu.targets.cuda import target as cuda
from py2cu.targets.cuda.helpers import HELPERS_OF_CUDA
from py2cu.targets.cxx.functions import FunctionView
from py2cu.targets.cxx.helpers.catalogue import TargetHelpers
from py2cu.targets.cxx.instances import group
from py2cu.targets.cxx.lines import Line
from py2cu.targets.cxx.overloads import separate_overloads
from py2cu.targets.cxx.parameters import wrapped
from py2cu.targets.cxx.symbols.declare_constants import in_order
from py2cu.targets.cxx.views import KernelView
from py2cu.targets.cxx.wrap_lines import wrap_line
from py2cu.targets.torch_binding import view as binding
from py2cu.translation import Artifacts, CallText, TargetName, Text

_IN_FILE: Final[dict[str, object]] = {"for_calls": False}
_IN_CALLS: Final[dict[str, object]] = {"for_calls": True}
_ORIGIN: Final = "\x1f"  # separates a line from its number; no printable line contains it


def template_folder() -> Path:
    """The folder of the templates: in an installed package `_templates`, in a checkout beside the package."""
    package = Path(__file__).parents[1]
    packaged = package / "_templates"
    return packaged if packaged.is_dir() else package.with_name("templates")


@functools.cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(template_folder()),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
        optimized=False,  # a template is compiled once a process: folding its constants takes longer than it saves
        extensions=["jinja2.ext.do"],
    )
    environment.globals |= {"wrapped": wrapped, "wrapped_pragma": _wrapped_pragma}
    environment.filters |= {
        "mapped": _mapped,
        "wrapped_condition": _wrapped_condition,
    }
    return environment


def render(
    name: str,
    source: str,
    families: tuple[ir.Instances, ...],
    signatures: tuple[Signature, ...],
    target: TargetName,
    namespace: str = "",
) -> Artifacts:
    """The three files of `target` for these kernels; `name` is their stem, `source` the Python file they came from.

    A family is all instances of one kernel; a group is the views of a family. The launchers are in `namespace`, or
    global.
    """
    make = _render_cuda if target is TargetName.CUDA else _render_cpu
    return make({"name": name, "source": source, "namespace": namespace}, families, signatures)


def _render_cuda(
    of_file: Mapping[str, str], families: tuple[ir.Instances, ...], signatures: tuple[Signature, ...]
) -> Artifacts:
    families = separate_overloads(families, cuda.DIALECT)
    groups = tuple(group(family, cuda.view, cuda.DIALECT) for family in families)
    views = tuple(chain.from_iterable(groups))
    name = of_file["name"]
    common: dict[str, object] = {**of_file, "kernels": views, "header": f"{name}.h"}
    parts = _common_parts(views, "__constant__ const", HELPERS_OF_CUDA)
    template, headers = "cuda/kernel.cu.j2", _device_headers(views, HELPERS_OF_CUDA)
    return Artifacts(
        name,
        TargetName.CUDA,
        render_text(f"{name}.cu", template, common | parts | _IN_FILE, _headers(views, HELPERS_OF_CUDA)),
        render_text(f"{name}.h", "cuda/launcher.h.j2", common, _declaration_headers(views)),
        _binding_text(f"{name}.cpp", common, families, signatures, is_cuda=True),
        _call_text(f"{name}.cu", template, common | parts, headers, _programs(families, groups, cuda.program)),
    )


def _render_cpu(
    of_file: Mapping[str, str], families: tuple[ir.Instances, ...], signatures: tuple[Signature, ...]
) -> Artifacts:
    families = separate_overloads(families, cpu.DIALECT)
    groups = tuple(group(family, cpu.view, cpu.DIALECT) for family in families)
    views = tuple(chain.from_iterable(groups))
    name = of_file["name"]
    common: dict[str, object] = {**of_file, "kernels": views, "header": f"{name}_cpu.h"}
    parts = _common_parts(views, "const", HELPERS_OF_CPU)
    file, template, headers = f"{name}_cpu.cpp", "cpu/kernel.cpp.j2", _headers(views, HELPERS_OF_CPU)
    return Artifacts(
        name,
        TargetName.CPU,
        render_text(file, template, common | parts | _IN_FILE, headers),
        render_text(f"{name}_cpu.h", "cpu/launcher.h.j2", common, _declaration_headers(views)),
        _binding_text(f"{name}_cpu_binding.cpp", common, families, signatures, is_cuda=False),
        _call_text(file, template, common | parts, headers, _programs(families, groups, cpu.program)),
    )


def _programs(
    families: tuple[ir.Instances, ...], groups: tuple[tuple[KernelView, ...], ...], make: Callable[..., LaunchProgram]
) -> tuple[tuple[LaunchProgram, ...], ...]:
    """How calls launch each instance of each kernel."""
    return tuple(tuple(make(kernel, own) for kernel in family) for family, own in zip(families, groups, strict=True))


def _common_parts(views: tuple[KernelView, ...], table: str, helpers: TargetHelpers) -> dict[str, object]:
    """The helpers, tables, structs and functions of a file, each once; `table` is the prefix of table declarations."""
    tables = dict.fromkeys(text for view in views for text in view.tables)
    functions: dict[object, FunctionView] = {}
    for function in chain.from_iterable(view.functions for view in views):
        functions.setdefault(function.code, function)
    structs = dict.fromkeys(called.struct for called in functions.values() if called.struct is not None)
    return {
        "helpers": [helpers.text(name) for name in _helpers(views)],
        "constants": in_order(chain.from_iterable(view.constants for view in views)),
        "tables": ["\n".join(chain(*map(wrap_line, f"{table} {text};".split("\n")))) for text in tables],
        "structs": list(structs),
        "functions": list(functions.values()),
    }


def _helpers(views: tuple[KernelView, ...]) -> Iterable[str]:
    return dict.fromkeys(name for view in views for name in view.helpers)


def _device_headers(views: tuple[KernelView, ...], helpers: TargetHelpers) -> set[str]:
    """The headers that the kernels and their helpers need, without their launchers."""
    return {*chain.from_iterable(helpers.headers(name) for name in _helpers(views))}.union(*(v.headers for v in views))


def _headers(views: tuple[KernelView, ...], helpers: TargetHelpers) -> set[str]:
    """The headers of kernels, helpers and launchers; the templates add the headers for their own text."""
    of_launchers = (view.bound_headers | view.launch_headers for view in views)
    return _device_headers(views, helpers).union(*of_launchers)


def _declaration_headers(views: tuple[KernelView, ...]) -> set[str]:
    """The headers that the launchers' declarations need."""
    return {*chain.from_iterable(view.declaration_headers for view in views)}


def _binding_text(
    file: str,
    common: Mapping[str, object],
    families: tuple[ir.Instances, ...],
    signatures: tuple[Signature, ...],
    is_cuda: bool,
) -> Text:
    dialect = cuda.DIALECT if is_cuda else cpu.DIALECT
    families = tuple(tuple(with_fields(each, constants=()) for each in family) for family in families)
    views = tuple(binding.view(*each, dialect) for each in zip(families, signatures, strict=True))
    scope = f"{common['namespace']}::" if common["namespace"] else ""
    facts = {
        "kernels": views,
        "is_cuda": is_cuda,
        "device": "cuda" if is_cuda else "cpu",
        "device_text": "a CUDA device" if is_cuda else "the CPU",
        "scope": scope,
        "dim_type": "dim3" if is_cuda else f"{scope}Dim3",
        "is_generic": any(family[0].variables for family in families),
        "uses_rows": any(array.row for view in views for array in (*view.passed, *view.allocated)),
        "uses_nonfinite": any(view.uses_nonfinite for view in views),
        "fills_int64": any(array.is_int64_fill for view in views for array in view.allocated),
        "uses_alignment": any(array.is_aligned for view in views for array in (*view.passed, *view.allocated)),
        "uses_null": any(array.test for view in views for array in view.passed),
        "solves_extents": any(dim.is_solved for view in views for dim in view.dims),
        "uses_leading": any(array.has_leading for view in views for array in (*view.passed, *view.allocated)),
        "uses_strides": any(array.is_strided for view in views for array in (*view.passed, *view.allocated)),
        "uses_distinct": any(
            array.is_strided and array.is_written for view in views for array in (*view.passed, *view.allocated)
        ),
        "uses_in_place": any(view.in_place for view in views),
        "uses_overlap": any(view.passed_overlaps or view.allocated_overlaps for view in views),
    }
    return render_text(file, "binding/binding.cpp.j2", {**common, **facts})


def _call_text(
    file: str,
    template: str,
    facts: Mapping[str, object],
    headers: Iterable[str],
    programs: tuple[tuple[LaunchProgram, ...], ...],
) -> CallText:
    """What calls compile, and the headers that it needs."""
    includes = {*headers}
    text = _rendered(file, template, {**facts, **_IN_CALLS}, includes)
    return CallText(text, tuple(sorted(includes)), programs)


def render_text(file: str, template: str, facts: Mapping[str, object], headers: Iterable[str] = ()) -> Text:
    """Render a template to the text of `file` and its line map.

    `includes` starts as `headers`; a template adds the headers that its own text needs.
    """
    return _rendered(file, template, facts, {*headers})


def _rendered(file: str, template: str, facts: Mapping[str, object], includes: set[str]) -> Text:
    rendered = _environment().get_template(template).render({**facts, "includes": includes})
    lines, origins = [], []
    for line in rendered.split("\n"):
        text, _, origin = line.partition(_ORIGIN)
        lines.append(text.rstrip())
        origins.append(int(origin or 0))
    return Text(file, "\n".join(lines), tuple(origins))


# --- filters ---


def _mapped(line: Line) -> str:
    return f"{line.text}{_ORIGIN}{line.origin}" if line.origin else line.text


def _wrapped_pragma(*parts: str) -> str:
    """A directive, on as many lines as it needs."""
    line = " ".join(part for part in parts if part)
    return " \\\n".join(wrap_line(line))


def _wrapped_condition(condition: str) -> str:
    """`    if (…)`, on as many lines as it needs."""
    return "\n".join(wrap_line(f"    if ({condition})"))
