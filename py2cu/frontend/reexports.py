"""Names that a file beside the kernel's imports and passes on.

    # common.py                            # kernels.py
    from py2cu import Index, kernel        from common import *

In: the name of a module, and the folder of the file that imports it. Out: what `*` of that module binds, and which
library a name of it comes from. Files are parsed, never imported or run.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from py2cu.frontend.known_names import is_known
from py2cu.live import is_library
from py2cu.source import SourceFile, UnreadableSource

PASSED_ON = 8  # how many files may pass a name on to each other


@dataclass(slots=True)
class ModuleNames:
    """The names that the top level of a file binds.

    `imports` maps each to the qualified name that one plain import gives it, or to None where anything else binds it;
    `stars` are the modules that it imports whole; `public` is its `__all__`.
    """

    folder: Path
    imports: dict[str, str | None] = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)
    public: list[str] | None = None


def find_file(module: str, folder: Path) -> Path | None:
    """The file of a module that is imported in `folder`: `helpers`, `.geometry`, `..geometry.points`."""
    level = len(module) - len(module.lstrip("."))
    for _ in range(level - 1):
        folder = folder / ".."
    place = folder.joinpath(*filter(None, module.split(".")))
    candidates = (place.with_suffix(".py"), place / "__init__.py") if module.strip(".") else (place / "__init__.py",)
    return next((path for path in candidates if path.is_file()), None)


def library_name(qualified: str, folder: Path, passed_on: int = PASSED_ON) -> str | None:
    """The name in a library that a name of a file beside stands for: "py2cu.kernel" for "common.kernel".

    None where it is no library's, or where the text does not tell.
    """
    dots = len(qualified) - len(qualified.lstrip("."))
    parts = qualified[dots:].split(".")
    for cut in range(0 if dots else 1, len(parts)):
        names = _names_of("." * dots + ".".join(parts[:cut]), folder)
        imported = _imported(names, parts[cut], passed_on) if names is not None else None
        if names is not None and imported is not None:
            full = ".".join([imported, *parts[cut + 1 :]])
            return full if is_library(full) else library_name(full, names.folder, passed_on - 1) if passed_on else None
    return None


def starred_names(module: str, folder: Path, passed_on: int = PASSED_ON) -> tuple[list[str], list[str]] | None:
    """What `from module import *` binds: names, and libraries of which it passes on every name.

    None where there is no such file.
    """
    names = _names_of(module, folder)
    if names is None:
        return None
    if names.public is not None:
        return names.public, []
    found, libraries = [name for name in names.imports if not name.startswith("_")], []
    for star in names.stars:
        if is_library(star):
            libraries.append(star)
        elif passed_on and (more := starred_names(star, names.folder, passed_on - 1)) is not None:
            found += more[0]
            libraries += more[1]
    return [*dict.fromkeys(found)], libraries


def _imported(names: ModuleNames, name: str, passed_on: int) -> str | None:
    """The qualified name, as the file says it, of what it imports as `name`."""
    if name in names.imports:
        return names.imports[name]
    for star in reversed(names.stars):
        if is_library(star):
            if is_known(f"{star}.{name}"):
                return f"{star}.{name}"
        elif passed_on and name in (starred_names(star, names.folder, passed_on - 1) or ((), ()))[0]:
            return f"{star}.{name}"
    return None


def _names_of(module: str, folder: Path) -> ModuleNames | None:
    path = find_file(module, folder)
    if path is None:
        return None
    try:
        tree = ast.parse(SourceFile.read(path).text)
    except (UnreadableSource, SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    names = ModuleNames(path.parent)
    for statement in tree.body:
        _enter(statement, names)
    return names


def _enter(statement: ast.stmt, names: ModuleNames) -> None:
    """Add what a statement of the top level binds."""
    match statement:
        case ast.ImportFrom(names=[ast.alias(name="*")]):
            names.stars.append(_module(statement))
        case ast.Import() | ast.ImportFrom():
            for name, meaning in _aliases(statement):
                names.imports[name] = meaning if names.imports.get(name, meaning) == meaning else None
        case ast.Assign(targets=[ast.Name(id="__all__")], value=value):
            names.public = _strings(value)
        case _:
            names.imports.update(dict.fromkeys(_bound(statement)))


def _aliases(statement: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str]]:
    """What an import binds, and the qualified name of that."""
    for alias in statement.names:
        if isinstance(statement, ast.Import):
            top = alias.name.partition(".")[0]
            yield (alias.asname, alias.name) if alias.asname else (top, top)
        else:
            module = _module(statement)
            yield alias.asname or alias.name, f"{module}{'' if module.endswith('.') else '.'}{alias.name}"


def _module(statement: ast.ImportFrom) -> str:
    return "." * statement.level + (statement.module or "")


def _bound(statement: ast.stmt) -> Iterator[str]:
    """The names that any other statement may bind at the top level."""
    match statement:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Import() | ast.ImportFrom():
            yield from (name for name, _ in _aliases(statement) if name != "*")
        case _:
            for child in ast.iter_child_nodes(statement):
                match child:
                    case ast.stmt():
                        yield from _bound(child)
                    case ast.ExceptHandler(body=body) | ast.match_case(body=body):
                        yield from (name for inner in body for name in _bound(inner))
                    case _:
                        stored = (node for node in ast.walk(child) if isinstance(node, ast.Name))
                        yield from (node.id for node in stored if not isinstance(node.ctx, ast.Load))


def _strings(value: ast.expr) -> list[str] | None:
    """The names in a literal `__all__`."""
    items: Sequence[ast.expr] = value.elts if isinstance(value, ast.List | ast.Tuple) else ()
    strings = [item.value for item in items if isinstance(item, ast.Constant) and isinstance(item.value, str)]
    return strings if items and len(strings) == len(items) else None
