"""Re-exports: names that a file beside the kernel's imports from a library, for others to import.

    # common.py                            # kernels.py
    from py2cu import Index, kernel        from common import *

In: the name of a module, and the folder of the file that imports it. Out: the names that `*` of that module binds, and
the library that a name comes from, if the source determines it. Files are parsed once each, never imported or run.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from py2cu.frontend.names.known_names import is_known
from py2cu.live import is_library
from py2cu.source import SourceFile, UnreadableSource, parsed

MAX_REEXPORTS: Final = 8  # the longest chain of files that re-export a name
OWN: Final = ""  # the meaning of a name that a file defines itself


@dataclass(frozen=True, slots=True)
class _Event:
    """One binding of a name, or of `*`, at the top level of a file.

    `meaning` is the qualified name that is imported, or OWN. `alias` is the right side of `kernel = py2cu.kernel`.
    `is_certain`: the statement runs whenever the file does.
    """

    name: str
    meaning: str
    is_certain: bool = True
    alias: str = ""

    @property
    def is_definition(self) -> bool:
        """True for a binding to an object that the file itself defines."""
        return self.meaning == OWN and not self.alias


@dataclass(slots=True)
class _File:
    """The bindings at the top level of a file, in order, and its `__all__`.

    `is_public_determined`: False if the file changes `__all__` in a way that only running it could evaluate.
    """

    folder: Path
    events: list[_Event] = field(default_factory=list)
    public: list[str] | None = None
    is_public_determined: bool = True


@dataclass(frozen=True, slots=True)
class Starred:
    """The effect of `from module import *`.

    `names` maps each name to whether the source determines its value; `libraries` are re-exported by stars.
    """

    names: dict[str, bool]
    libraries: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Reexports:
    """The names that files in `folder` can import from library re-exports."""

    folder: Path
    _files: dict[Path, _File | None] = field(default_factory=dict)
    _meanings: dict[tuple[Path, str], str | None] = field(default_factory=dict)
    _starred: dict[Path, Starred | None] = field(default_factory=dict)
    _qualified: dict[str, str | None] = field(default_factory=dict)

    def library_name(self, qualified: str) -> str | None:
        """The library name behind a re-exported name: `common.kernel` → `py2cu.kernel`.

        None if the name does not come from a library, or the source does not decide it.
        """
        if qualified not in self._qualified:
            self._qualified[qualified] = self._library_name(qualified, self.folder, MAX_REEXPORTS)
        return self._qualified[qualified]

    def starred(self, module: str) -> Starred | None:
        """The effect of `from module import *`; None without such a file, or if the source does not determine it."""
        path = find_file(module, self.folder)
        return self._starred_of(path) if path is not None else None

    def _library_name(self, qualified: str, folder: Path, remaining: int) -> str | None:
        dots = len(qualified) - len(qualified.lstrip("."))
        parts = qualified[dots:].split(".")
        for cut in range(0 if dots else 1, len(parts)):
            path = self._find("." * dots + ".".join(parts[:cut]), folder)
            if path is not None and (meaning := self._meaning(path, parts[cut])):
                full = ".".join([meaning, *parts[cut + 1 :]])
                if is_library(full):
                    return full
                return self._library_name(full, path.parent, remaining - 1) if remaining else None
        return None

    def _meaning(self, path: Path, name: str) -> str | None:
        """The meaning of `name` after the file has run; None if the source does not determine it."""
        if (path, name) not in self._meanings:
            self._meanings[path, name] = None  # breaks import cycles
            events = [*self._events(path, name)]
            last = events[-1] if events else None
            is_rebound = sum(event.is_definition for event in events) > 1
            if last is not None and last.is_certain and not (last.is_definition and is_rebound):
                self._meanings[path, name] = self._aliased(path, last.alias) if last.alias else last.meaning
        return self._meanings[path, name]

    def _aliased(self, path: Path, dotted: str) -> str:
        """The meaning of a dotted name that the file assigns to another one."""
        head, dot, rest = dotted.partition(".")
        meaning = self._meaning(path, head)
        return f"{meaning}{dot}{rest}" if meaning else OWN

    def _events(self, path: Path, name: str) -> Iterator[_Event]:
        """The bindings of `name` in a file, in order, stars included."""
        file = self._file(path)
        for event in file.events if file is not None else ():
            if event.name == name:
                yield event
            elif event.name == "*" and is_library(event.meaning):
                if is_known(f"{event.meaning}.{name}"):
                    yield _Event(name, f"{event.meaning}.{name}", event.is_certain)
            elif event.name == "*" and (there := self._find(event.meaning, path.parent)) is not None:
                starred = self._starred_of(there)
                if starred is None:
                    yield _Event(name, OWN, is_certain=False)
                elif name in starred.names:
                    is_certain = event.is_certain and starred.names[name]
                    dot = "" if event.meaning.endswith(".") else "."
                    yield _Event(name, f"{event.meaning}{dot}{name}", is_certain)

    def _starred_of(self, path: Path) -> Starred | None:
        if path not in self._starred:
            self._starred[path] = Starred({}, ())  # breaks import cycles
            self._starred[path] = self._read_starred(path)
        return self._starred[path]

    def _read_starred(self, path: Path) -> Starred | None:
        file = self._file(path)
        if file is None or not file.is_public_determined:
            return None
        if file.public is not None:  # rule: library-public
            return Starred({name: self._meaning(path, name) is not None for name in file.public}, ())
        names: dict[str, None] = {}
        libraries: list[str] = []
        for event in file.events:
            if event.name != "*":
                names |= {} if event.name.startswith("_") else {event.name: None}  # rule: library-private
            elif is_library(event.meaning):
                libraries.append(event.meaning)
            elif (there := self._find(event.meaning, path.parent)) is not None:
                starred = self._starred_of(there)
                if starred is None:
                    return None
                names |= dict.fromkeys(starred.names)
                libraries += starred.libraries
        return Starred({name: self._meaning(path, name) is not None for name in names}, tuple(libraries))

    def _find(self, module: str, folder: Path) -> Path | None:
        """The file of `module`, which a file in `folder` imports; absolute names are sought in `self.folder` first."""
        path = None if module.startswith(".") else find_file(module, self.folder)
        return path or find_file(module, folder)

    def _file(self, path: Path) -> _File | None:
        if path not in self._files:
            self._files[path] = _read(path)
        return self._files[path]


def find_file(module: str, folder: Path) -> Path | None:
    """The file of a module that is imported in `folder`: `helpers`, `.geometry`, `..geometry.points`."""
    level = len(module) - len(module.lstrip("."))
    for _ in range(level - 1):
        folder = folder / ".."
    place = folder.joinpath(*filter(None, module.split(".")))
    candidates = [place / "__init__.py", *([place.with_suffix(".py")] if module.strip(".") else [])]
    return next((path for path in candidates if path.is_file()), None)


def _read(path: Path) -> _File | None:
    try:
        tree = parsed(SourceFile.read(path).text)
    except (UnreadableSource, SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    file = _File(path.parent)
    for statement in tree.body:
        _enter(statement, file)
    rebound = (name for node in ast.walk(tree) if isinstance(node, ast.Global) for name in node.names)
    file.events += [_Event(name, OWN, is_certain=False) for name in rebound]
    mentions = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == "__all__"]
    file.is_public_determined = not mentions or (len(mentions) == 1 and file.public is not None)
    return file


def _enter(statement: ast.stmt, file: _File, *, is_certain: bool = True) -> None:
    """Add the bindings of a statement at the top level, or of one within it."""
    match statement:
        case ast.Import() | ast.ImportFrom():
            file.events += [_Event(name, meaning, is_certain) for name, meaning in _aliases(statement)]
        case (
            ast.Assign(targets=[ast.Name(id="__all__")], value=value)
            | ast.AnnAssign(target=ast.Name(id="__all__"), value=ast.expr() as value)
        ) if is_certain:
            file.public = _strings(value)
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Name() | ast.Attribute() as value):
            dotted = ast.unparse(value)
            is_name = all(map(str.isidentifier, dotted.split(".")))
            file.events.append(_Event(name, OWN, is_certain, alias=dotted if is_name else ""))
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            file.events.append(_Event(name, OWN, is_certain))
        case _:
            for child in ast.iter_child_nodes(statement):
                match child:
                    case ast.stmt():
                        _enter(child, file, is_certain=False)
                    case ast.ExceptHandler(body=body) | ast.match_case(body=body):
                        for inner in body:
                            _enter(inner, file, is_certain=False)
                    case _:
                        stored = (node for node in ast.walk(child) if isinstance(node, ast.Name))
                        bound = (node.id for node in stored if not isinstance(node.ctx, ast.Load))
                        is_plain = isinstance(statement, ast.Assign | ast.AnnAssign)
                        file.events += [_Event(name, OWN, is_certain and is_plain) for name in bound]


def _aliases(statement: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str]]:
    """The names that an import binds, with their qualified names; for `*`, the module."""
    for alias in statement.names:
        if isinstance(statement, ast.Import):
            top = alias.name.partition(".")[0]
            yield (alias.asname, alias.name) if alias.asname else (top, top)
            continue
        module = "." * statement.level + (statement.module or "")
        if alias.name == "*":
            yield "*", module
        else:
            yield alias.asname or alias.name, f"{module}{'' if module.endswith('.') else '.'}{alias.name}"


def _strings(value: ast.expr) -> list[str] | None:
    """The names in a literal `__all__`; None if it is not a literal."""
    if not isinstance(value, ast.List | ast.Tuple):
        return None
    items: Sequence[ast.expr] = value.elts
    strings = [item.value for item in items if isinstance(item, ast.Constant) and isinstance(item.value, str)]
    return strings if len(strings) == len(items) else None
