"""The rooms of the package: imports point one way, no files import each other in a circle, and rooms stay small."""

from __future__ import annotations

import ast
import functools
import os
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Set
from pathlib import Path
from typing import Final

import pytest

PACKAGE: Final = Path(__file__).parents[2] / "py2cu"

BASE: Final = {"codes", "diagnostics", "dtypes", "options", "records", "source", "suggestions"}
ABI: Final = BASE | {"ir.operators", "ir.types", "ir.abi"}
IR: Final = ABI | {"ir", "builtins", "analysis"}
SIMULATED: Final = {"simulator.findings", "simulator.launch", "simulator.state"}
# Each room, and the rooms below it that it may import. A room that is not listed is a file directly in the package.
ROOMS: Final[Mapping[str, Set[str]]] = {
    "codes": set(),
    "dtypes": {"records"},
    "records": set(),
    "options": set(),
    "side_by_side": set(),
    "suggestions": set(),
    "collector": set(),
    "threads": set(),
    "source": {"records", "threads"},
    "function_text": {"source"},
    "live": {"diagnostics", "dtypes", "function_text", "source"},
    "diagnostics": {"codes", "records", "source"},
    "ir.operators": {"records"},
    "ir.types": BASE,
    "ir.abi": BASE | {"ir.operators", "ir.types"},
    "builtins": ABI,
    "ir": ABI,
    "analysis": ABI | {"ir", "builtins"},
    "frontend.source": IR | {"threads", "frontend.names", "function_text", "live"},
    "frontend.names": ABI | {"builtins", "ir", "live"},
    "frontend.declarations": IR | {"frontend.hints", "frontend.names", "frontend.source"},
    "frontend.numba": IR | {"frontend.declarations", "frontend.names", "frontend.source"},
    "frontend.hints": {"builtins", "frontend.names", "suggestions"},
    "frontend.bodies": IR
    | {"frontend.declarations", "frontend.hints", "frontend.names", "frontend.numba", "frontend.source", "live"},
    "frontend": IR
    | {"frontend.bodies", "frontend.declarations", "frontend.hints", "frontend.names", "frontend.numba"}
    | {"frontend.source", "live"},
    "passes": IR,
    "passes.canonical": IR,
    "passes.typing": IR,
    "passes.guards": IR,
    "passes.lowering": IR | {"passes.guards", "passes.typing"},
    "passes.simplify": IR | {"passes.lowering"},
    "passes.checks": IR | {"passes"},
    "translation": ABI,
    "targets.cxx": IR | {"passes.lowering"},
    "targets.cuda": IR | {"passes.lowering", "targets.cxx"},
    "targets.cpu": IR | {"passes.checks", "passes.lowering", "targets.cxx"},
    "targets.torch_binding": IR | {"targets.cxx"},
    "targets": IR
    | {"collector", "passes", "passes.lowering", "threads", "translation"}
    | {"targets.cpu", "targets.cuda", "targets.cxx", "targets.torch_binding"},
    "hosts.model": ABI | {"ir", "passes.lowering"},
    "hosts.reading": IR | {"frontend.bodies", "frontend.names", "hosts.model"},
    "hosts.text": IR | {"hosts.model", "targets", "targets.cxx", "translation"},
    "hosts": IR
    | {"frontend.bodies", "frontend.declarations", "frontend.names", "frontend.source", "hosts.model", "hosts.reading"}
    | {"hosts.text", "targets.cxx", "translation"},
    "pipeline": IR | {"collector", "threads", "hosts", "frontend", "frontend.names", "frontend.numba"}
    | {"frontend.source"}
    | {"translation"}
    | {"passes", "passes.canonical", "passes.checks", "passes.guards", "passes.lowering", "passes.simplify"}
    | {"passes.typing"}
    | {"targets", "targets.cpu", "targets.cuda", "targets.cxx"},
    "simulator.findings": BASE,
    "simulator.launch": ABI,
    "simulator.state": ABI | {"simulator.findings"},
    "simulator.values": ABI | {"builtins", *SIMULATED},
    "simulator.memory": ABI | {*SIMULATED, "simulator.values"},
    "simulator.schedule": ABI | {*SIMULATED, "live", "simulator.memory", "simulator.values", "builtins"},
    "simulator": ABI
    | {*SIMULATED, "builtins", "collector", "live", "simulator.memory", "simulator.schedule", "simulator.values"},
    "devices": {"translation"},
    "build": ABI | {"devices", "threads", "translation"},
    "call.launchers": ABI | {"build", "ir", "threads"},
    "call": ABI
    | {"call.launchers", "devices", "ir", "build", "function_text", "live", "pipeline", "simulator", "targets"}
    | {"threads", "translation"},
    "check": ABI | {"devices", "ir", "build", "call", "simulator", "simulator.values"},
    "kernels": ABI | {"call", "check", "collector", "function_text", "live", "side_by_side", "threads", "translation"},
    "hosts.live": ABI
    | {"build", "call", "threads", "devices", "frontend.source", "function_text", "hosts", "hosts.model"}
    | {"hosts.text", "ir", "kernels", "live", "translation"},
    "numba": ABI | {"builtins", "call", "function_text", "kernels", "live"},
    "decorator": {"hosts.live", "kernels", "numba", "options"},
    "testing": {"check", "diagnostics", "kernels"},
    "cli": {"*"},
    "__main__": {"cli"},
    "__init__": {"builtins", "decorator", "diagnostics", "hosts.live", "kernels"},
}  # fmt: skip
HOMES: Final = {
    "libcst": ("frontend", "hosts"),
    "jinja2": ("targets",),
    "torch": (
        "build",
        "call",
        "check",
        "cli",
        "devices",
        "hosts",
        "kernels",
        "numba",
        "simulator",
        "testing",
        "builtins",
    ),
    "cuda": ("build", "call"),
    "click": ("cli",),
    "greenlet": ("simulator",),
    "rich": ("cli", "check"),
}
MOST_FILES: Final = 20
MOST_LINES: Final = 400
MOST_LINES_OF_A_FUNCTION: Final = 60


def modules() -> dict[str, Path]:
    """Every module of the package by its name, `py2cu` left out."""
    names = {path.relative_to(PACKAGE).with_suffix(""): path for path in sorted(PACKAGE.rglob("*.py"))}
    return {".".join(name.parts).removesuffix(".__init__"): path for name, path in names.items()}


MODULES: Final = modules()


@functools.cache
def imports(path: Path) -> tuple[str, ...]:
    """The modules that a file imports, lazily or for types alone, too."""
    return tuple(_imports(path))


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            are_modules = [name.removeprefix("py2cu.") in MODULES for name in inner]
            yield from (name for name, is_module in zip(inner, are_modules, strict=True) if is_module)
            if not all(are_modules):
                yield node.module


IMPORTS: Final = {
    name: {one.removeprefix("py2cu.") for one in imports(path) if one.startswith("py2cu.")}
    for name, path in MODULES.items()
}


def room_of(module: str) -> str:
    """The innermost listed room that holds a module."""
    parts = module.split(".")
    return next(".".join(parts[:end]) for end in range(len(parts), 0, -1) if ".".join(parts[:end]) in ROOMS)


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_only_those_below_it(room: str) -> None:
    inside = [name for name in MODULES if room_of(name) == room]
    assert inside, f"there is no room {room}"
    wrong = [
        f"{name} imports {other}"
        for name in inside
        for other in sorted(IMPORTS[name])
        if "*" not in ROOMS[room] and room_of(other) not in ROOMS[room] | {room}
    ]
    assert not wrong


def test_rooms_above_name_nodes_as_the_tree_exports_them() -> None:
    """`ir.Assign`, as the front end writes `cst.Assign`."""
    nodes = {"ir.elisions", "ir.expressions", "ir.kernels", "ir.statements", "ir.types"}
    rooms = ("analysis", "frontend", "passes", "targets", "pipeline")
    assert not [name for name in MODULES if name.startswith(rooms) and IMPORTS[name] & nodes]


def test_no_files_import_each_other_in_a_circle() -> None:
    assert circles(IMPORTS) == []


def circles(graph: Mapping[str, Set[str]]) -> list[list[str]]:
    """The strongly connected components of more than one node (Tarjan)."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    components = []

    def visit(node: str) -> None:
        order[node] = low[node] = len(order)
        stack.append(node)
        for other in sorted(graph.get(node, ())):
            if other not in order:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], order[other])
        if low[node] == order[node]:
            at = stack.index(node)
            if len(stack) - at > 1:
                components.append(sorted(stack[at:]))
            del stack[at:]

    for node in graph:
        if node not in order:
            visit(node)
    return components


def test_a_circle_is_found() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) == [["b", "c"]]


def count(lines: list[str]) -> int:
    """The number of lines without the anchors of mutation rows that stand alone."""
    return sum(not line.lstrip().startswith("# rule: ") for line in lines)


def test_rooms_files_and_functions_are_small() -> None:
    files: dict[Path, int] = defaultdict(int)
    too_large = []
    for name, path in MODULES.items():
        files[path.parent] += 1
        text = path.read_text(encoding="utf-8")
        if count(text.splitlines()) > MOST_LINES:
            too_large.append(f"{name}: {count(text.splitlines())} lines")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = count(text.splitlines()[node.lineno - 1 : node.end_lineno])
                too_large += [f"{name}.{node.name}: {lines} lines"] * (lines > MOST_LINES_OF_A_FUNCTION)
    too_large += [f"{folder.name}: {number} files" for folder, number in files.items() if number > MOST_FILES]
    assert not too_large


@pytest.mark.parametrize("library", HOMES)
def test_each_big_library_has_its_rooms(library: str) -> None:
    users = {
        name for name, path in MODULES.items() if any(one.split(".")[0] == library for one in imports(path))
    }  # fmt: skip
    assert {name for name in users if name.split(".")[0] not in HOMES[library]} == set()


@pytest.mark.parametrize("heavy", ["torch", "cuda", "numba", "libcst", "jinja2", "greenlet"])
def test_importing_the_package_and_decorating_loads_nothing_heavy(heavy: str) -> None:
    program = (
        f"import py2cu, sys; from py2cu import kernel, Index; kernel(lambda: None); assert {heavy!r} not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("heavy", ["torch", "numpy", "numba", "libcst.matchers"])  # the last takes longer than LibCST
def test_translating_needs_nothing_heavier_than_a_parser(heavy: str) -> None:
    program = f"import py2cu.pipeline, sys; assert {heavy!r} not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)


CACHED: Final = """
import sys, torch
from jaxtyping import Float32
from torch import Tensor
from py2cu import Index, kernel

@kernel
def twice(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
    out[i] = 2 * x[i]

assert twice(torch.ones(3)).tolist() == [2, 2, 2]
print(*sys.modules)
"""


def test_builds_use_no_private_name_of_torch() -> None:
    extension = pytest.importorskip("torch.utils.cpp_extension")
    private = {name for name in vars(extension) if re.fullmatch(r"_[^_]\w*", name)}
    for path in sorted((PACKAGE / "build").glob("*.py")):
        text = path.read_text(encoding="utf-8")
        assert not private.intersection(re.findall(r"\w+", text)), path.name
        assert not re.search(r"\btorch\b[.\w]*\._[^_]", text), path.name


@pytest.mark.builds
def test_the_call_of_a_cached_kernel_needs_few_modules(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    script = tmp_path / "cached.py"
    script.write_text(CACHED)
    environment = os.environ | {"PY2CU_CACHE_DIR": str(tmp_path / "cache"), "CUDA_VISIBLE_DEVICES": ""}
    command = [sys.executable, str(script)]
    first, second = (
        {*subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout.split()}
        for _ in range(2)
    )
    unneeded = {"libcst", "jinja2", "py2cu.pipeline", "py2cu.builtins.rows"}
    assert unneeded <= first
    rest = {"py2cu.build.nvrtc", "py2cu.build.messages", "py2cu.call.definition", "py2cu.ir.statements"}
    assert not (unneeded | rest) & second
