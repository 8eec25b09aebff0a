"""Imports point one way: each room of the package knows only the rooms below it, and each big library has one home."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "py2cu"

BASE = {"codes", "dtypes", "folders", "records", "source", "diagnostics", "options"}
# Each room, and what it may know beside itself.
ROOMS = {
    "codes": set[str](),
    "dtypes": set(),
    "records": set(),
    "source": {"records"},
    "options": set(),
    "folders": set(),
    "nearest": set(),
    "deep_stack": set(),
    "live": set(),
    "function_text": {"source"},
    "dependencies": {"live"},
    "translator": BASE | {"dependencies", "function_text", "live", "pipeline", "runtime", "translation"},
    "diagnostics": {"codes", "source"},
    "ir": BASE,
    "builtins": BASE,
    "frontend": BASE | {"ir", "builtins", "deep_stack", "function_text", "live", "nearest"},
    "passes": BASE | {"ir", "builtins", "nearest"},
    "translation": BASE | {"ir"},
    "targets": BASE | {"ir", "builtins", "passes"},
    "render": BASE | {"ir", "builtins", "targets", "translation"},
    "pipeline": BASE | {"ir", "deep_stack", "frontend", "nearest", "passes", "render", "translation"},
    "dump": BASE | {"ir", "passes", "pipeline"},
    "vocabulary": set(),
    "runtime": BASE | {"builtins", "ir", "live", "translation", "vocabulary"},
    "simulator": {"kernels", "options", "runtime"},
    "progress": set(),
    "kernels": BASE | {"function_text", "ir", "progress", "runtime", "simulator", "translation", "translator"},
    "testing": {"kernels", "runtime", "diagnostics"},
    "console": {"diagnostics", "source"},
    "loading": {"console", "deep_stack", "diagnostics", "frontend", "kernels", "live", "nearest", "options", "source"},
    "cli": {"*"},
    "__main__": {"cli"},
    "__init__": {"diagnostics", "kernels", "vocabulary"},
}
HOMES = {
    "libcst": {"frontend"},
    "jinja2": {"render"},
    "torch": {"runtime", "kernels", "testing", "cli", "vocabulary"},
    "click": {"cli", "console"},
    "greenlet": {"runtime"},
    "rich": {"console", "progress"},
}


def modules() -> Iterator[tuple[str, Path]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        inside = path.relative_to(PACKAGE)
        yield inside.parts[0].removesuffix(".py"), path


def imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names if node.module == "py2cu")


@pytest.mark.parametrize(("room", "path"), tuple(modules()), ids=lambda value: getattr(value, "stem", value))
def test_imports_point_one_way(room: str, path: Path) -> None:
    allowed = ROOMS[room] | {room}
    for name in imported(path):
        parts = name.split(".")
        if (
            parts[0] == "py2cu"
            and len(parts) > 1
            and (PACKAGE / f"{parts[1]}.py").exists() | (PACKAGE / parts[1]).is_dir()
        ):
            assert "*" in allowed or parts[1] in allowed, f"{room} must not know {parts[1]}"
        assert room in HOMES.get(parts[0], {room}), f"{parts[0]} has no place in {room}"


@pytest.mark.parametrize("heavy", ["torch", "numba", "libcst", "jinja2", "greenlet"])
def test_importing_the_package_and_decorating_loads_nothing_heavy(heavy: str) -> None:
    program = (
        f"import py2cu, sys; from py2cu import kernel, Index; kernel(lambda: None); assert {heavy!r} not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("heavy", ["torch", "numpy", "numba", "libcst.matchers"])  # the last takes longer than LibCST
def test_translating_needs_nothing_heavier_than_a_parser(heavy: str) -> None:
    program = f"import py2cu.pipeline, sys; assert {heavy!r} not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)
