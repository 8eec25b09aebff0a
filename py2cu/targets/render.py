"""Renders views to text with Jinja, and chooses the template of each file.

The only module that imports Jinja. While a text is rendered, a line that stems from Python carries the number of its
Python line behind a separator; afterwards these numbers become the line map.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path, PurePath
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
from py2cu.targets.cxx.dialect import Dialect
from py2cu.targets.cxx.functions import FunctionView
from py2cu.targets.cxx.helpers.catalogue import TargetHelpers
from py2cu.targets.cxx.instances import group
from py2cu.targets.cxx.lines import Line
from py2cu.targets.cxx.overloads import separate_overloads
from py2cu.targets.cxx.parameters import wrapped
from py2cu.targets.cxx.symbols.declare_constants import in_order
from py2cu.targets.cxx.views import KernelView
from py2cu.targets.cxx.wrap_lines import wrap_line
from py2cu.targets.torch_binding.view import BindingView
from py2cu.translation import Artifacts, CallText, TargetName, Text

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


@dataclass(frozen=True, slots=True)
class _Target:
    """What the texts of one target are made with, and what its files are called."""

    dialect: Dialect
    view: Callable[[ir.Kernel], KernelView]
    program: Callable[[ir.Kernel, tuple[KernelView, ...]], LaunchProgram]
    helpers: TargetHelpers
    table: str  # the prefix of table declarations
    template: str
    launcher: str
    kernel_file: str
    header_file: str
    binding_file: str


_TARGETS: Final = {
    TargetName.CUDA: _Target(
        cuda.DIALECT, cuda.view, cuda.program, HELPERS_OF_CUDA, "__constant__ const",
        "cuda/kernel.cu.j2", "cuda/launcher.h.j2", "{}.cu", "{}.h", "{}.cpp",
    ),
    TargetName.CPU: _Target(
        cpu.DIALECT, cpu.view, cpu.program, HELPERS_OF_CPU, "const",
        "cpu/kernel.cpp.j2", "cpu/launcher.h.j2", "{}_cpu.cpp", "{}_cpu.h", "{}_cpu_binding.cpp",
    ),
}  # fmt: skip


def render(
    name: str,
    file: str,
    families: tuple[ir.Instances, ...],
    signatures: tuple[Signature, ...],
    target: TargetName,
    namespace: str = "",
) -> Artifacts:
    """The three files of `target` for these kernels; `name` is their stem, `file` the Python that they came from.

    A family is all instances of one kernel; a group is the views of a family. The launchers are in `namespace`, or
    global.
    """
    its = _TARGETS[target]
    families, _, views = _viewed(families, its)
    header, source = its.header_file.format(name), _printable(PurePath(file).name)
    common: dict[str, object] = {
        "name": name, "source": source, "namespace": namespace, "kernels": views, "header": header,
    }  # fmt: skip
    parts = _common_parts(views, its) | {"for_calls": False}
    return Artifacts(
        name,
        target,
        render_text(its.kernel_file.format(name), its.template, common | parts, _headers(views, its.helpers)),
        render_text(header, its.launcher, common, _declaration_headers(views)),
        _binding_text(its.binding_file.format(name), common, families, signatures, target),
    )


def render_for_calls(name: str, families: tuple[ir.Instances, ...], target: TargetName) -> CallText:
    """What calls on `target` compile of these kernels, and the headers that it needs."""
    its = _TARGETS[target]
    families, groups, views = _viewed(families, its)
    includes = {*(_device_headers if target is TargetName.CUDA else _headers)(views, its.helpers)}
    facts = {"kernels": views, "for_calls": True} | _common_parts(views, its)
    text = _rendered(its.kernel_file.format(name), its.template, facts, includes)
    programs = tuple(
        tuple(its.program(kernel, own) for kernel in family) for family, own in zip(families, groups, strict=True)
    )
    return CallText(text, tuple(sorted(includes)), programs)


def _printable(name: str) -> str:
    """A file's name as one line of a comment, with non-printing characters escaped."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in name)


def _viewed(
    families: tuple[ir.Instances, ...], its: _Target
) -> tuple[tuple[ir.Instances, ...], tuple[tuple[KernelView, ...], ...], tuple[KernelView, ...]]:
    """The kernels as the target names them, their views by kernel, and all views."""
    families = separate_overloads(families, its.dialect)
    groups = tuple(group(family, its.view, its.dialect) for family in families)
    return families, groups, tuple(chain.from_iterable(groups))


def _common_parts(views: tuple[KernelView, ...], its: _Target) -> dict[str, object]:
    """The helpers, tables, structs and functions of a file, each once."""
    tables = dict.fromkeys(text for view in views for text in view.tables)
    functions: dict[object, FunctionView] = {}
    for function in chain.from_iterable(view.functions for view in views):
        functions.setdefault(function.code, function)
    structs = dict.fromkeys(called.struct for called in functions.values() if called.struct is not None)
    return {
        "helpers": [its.helpers.text(name) for name in _helpers(views)],
        "constants": in_order(chain.from_iterable(view.constants for view in views)),
        "tables": ["\n".join(chain(*map(wrap_line, f"{its.table} {text};".split("\n")))) for text in tables],
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
    target: TargetName,
) -> Text:
    is_cuda, dialect = target is TargetName.CUDA, _TARGETS[target].dialect
    families = tuple(tuple(with_fields(each, constants=()) for each in family) for family in families)
    bound = (each for each in zip(families, signatures, strict=True) if each[1].arrays)  # torch needs their device
    views = tuple(BindingView(*each, dialect, is_cuda=is_cuda) for each in bound)
    scope = f"{common['namespace']}::" if common["namespace"] else ""
    facts = {
        "kernels": views,
        "is_cuda": is_cuda,
        "device": target.value,
        "device_text": "a CUDA device" if is_cuda else "the CPU",
        "scope": scope,
        "dim_type": "dim3" if is_cuda else f"{scope}Dim3",
        "uses": frozenset().union(*(view.uses for view in views)),
    }
    return render_text(file, "binding/binding.cpp.j2", {**common, **facts})


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
