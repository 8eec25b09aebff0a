"""Imports a user's file for the commands that run kernels, and finds the kernels in it.

In: paths. Out: `Loaded`, whose kernels are all translated. What is wrong with any file, be it that Python cannot run it
or that a kernel is outside the language, is raised together as `Refused`.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import CodeType, ModuleType

from py2cu.cli.console import InputError, collecting, described, marked
from py2cu.deep_stack import with_deep_stack
from py2cu.diagnostics import Reporter, TranslationError
from py2cu.kernels import Kernel
from py2cu.live import is_library
from py2cu.options import NO_VALUES, Values
from py2cu.source import SourceFile
from py2cu.suggestions import did_you_mean

ShadowedModules = dict[tuple[str, ...], dict[str, ModuleType]]
"""Modules found in folders, under names that other files had taken."""


@dataclass(frozen=True, slots=True)
class LoadedFile:
    """A file that was imported, and its kernels, all of them translated."""

    file: SourceFile
    kernels: tuple[Kernel, ...]

    def source(self) -> SourceFile:
        """The file, as a build asks for it."""
        return self.file


def load_files(files: Sequence[Path], only: str | None, values: Values = NO_VALUES) -> list[LoadedFile]:
    """Every file imported, every kernel translated, with these values of its `Constexpr[int]` parameters.

    Raises:
        Refused: with all that is wrong with any of them.
    """
    done: list[LoadedFile] = []
    others: ShadowedModules = {}
    with collecting() as refusals:
        for number, path in enumerate(files):
            with refusals.of(path):
                loaded = _load(path, number, only, others)
                kernels = []
                for kernel in loaded.kernels:
                    with refusals.of(path):  # translated here, so that all errors show before any build
                        known = kernel.signature.constexpr_ints.keys() & values.keys()
                        kernels.append(kernel.with_values(**{name: values[name] for name in known}))
                        kernels[-1].translation  # noqa: B018
                done.append(replace(loaded, kernels=tuple(kernels)))
    return done


def _load(path: Path, number: int, only: str | None, others: ShadowedModules) -> LoadedFile:
    file = SourceFile.read(path)
    module = _import(path, file, f"_py2cu_{number}_{path.stem}", others)
    own = {id(kernel): kernel for kernel in _kernels_in(module, module.__name__)}
    kernels = tuple(kernel for kernel in own.values() if only in (None, kernel.__name__))
    if not kernels:
        known = [kernel.__name__ for kernel in own.values()]
        names = ", ".join(f"`{name}`" for name in known)
        what = f"no kernel called `{only}`" if only else "no kernel"
        hint = "they stand at the top level of the file or of a class, under `@kernel` from py2cu"
        hint = did_you_mean(only or "", known, f"it has {names}") if names else hint
        raise InputError([f"{path}: {marked('error', 'error[P107]')}: there is {what} to import\n  hint: {hint}"], 1)
    return LoadedFile(file, kernels)


def _kernels_in(scope: ModuleType | type, module: str) -> Iterator[Kernel]:
    """The kernels that a module defines, those of its classes among them."""
    for value in vars(scope).values():
        if isinstance(value, Kernel) and value.__module__ == module:
            yield value
        elif isinstance(value, type) and value.__module__ == module and value is not scope:
            yield from _kernels_in(value, module)


def _import(path: Path, file: SourceFile, name: str, others: ShadowedModules) -> ModuleType:
    """Run the file under a private name, its folder on `sys.path`; no bytecode is left beside it.

    In a package, one with `__init__.py`, its relative imports work as they would there.
    """
    place = os.path.abspath(path)
    module = ModuleType(name)
    module.__file__ = place
    sys.modules[name] = module
    folder, package = _package(os.path.dirname(place))
    try:
        with _found_first((os.path.dirname(place), folder), others):
            if package:
                module.__package__ = package
                importlib.import_module(package)
            exec(_compiled(path, file, place), module.__dict__)
    except (InputError, TranslationError):
        raise
    except (Exception, SystemExit) as error:
        where = f"{path}:{_line_of(error, place)}"
        raise InputError([f"{where}: {marked('error', 'error')}: the file raises {described(error)}"], 1) from None
    return module


@contextmanager
def _found_first(folders: tuple[str, ...], others: ShadowedModules) -> Iterator[None]:
    """Import from these folders first, also where another file has imported a module of the same name elsewhere.

    That one is back afterwards, and `others` keeps what stood in its place for the next file of these folders.
    """
    path, elsewhere = sys.path.copy(), {name: sys.modules[name] for name in sys.modules if _is_elsewhere(name, folders)}
    for name in elsewhere:
        del sys.modules[name]
    sys.modules |= others.get(folders, {})
    sys.path[:0] = dict.fromkeys(folders)
    try:
        yield
    finally:
        sys.path[:] = path
        tops = {name.partition(".")[0] for name in elsewhere}
        others[folders] = {name: sys.modules[name] for name in sys.modules if name.partition(".")[0] in tops}
        for name in others[folders]:
            del sys.modules[name]
        sys.modules |= elsewhere


def _is_elsewhere(name: str, folders: tuple[str, ...]) -> bool:
    """Whether the folders have a module called `name`, or its package, and the one imported is another."""
    top = name.partition(".")[0]
    if top == "__main__" or is_library(top):
        return False
    places = (os.path.join(folder, top + end) for folder in folders for end in (f"{os.sep}__init__.py", ".py"))
    own = next(filter(os.path.isfile, places), None)
    return own is not None and own != getattr(sys.modules.get(top), "__file__", None)


def _package(folder: str) -> tuple[str, str]:
    """Where the outermost package that `folder` is in lies, and its dotted name; no name where it is in none."""
    names: list[str] = []
    while os.path.isfile(os.path.join(folder, "__init__.py")):
        folder, name = os.path.split(folder)
        names.insert(0, name)
    return folder, ".".join(names)


def _compiled(path: Path, file: SourceFile, place: str) -> CodeType:
    """The file's code; one that Python does not compile is refused as the translator would, else as Python does."""
    from py2cu.frontend.source.reader import read_module

    try:
        return compile(file.text, place, "exec", dont_inherit=True)
    except SyntaxError as error:
        reporter = Reporter(file)
        with_deep_stack(read_module)(file, reporter)
        if reporter.failed:
            raise TranslationError(reporter.sorted) from None
        raise InputError([f"{path}:{error.lineno or 1}: {marked('error', 'error')}: {error.msg}"], 1) from None


def _line_of(error: BaseException, place: str) -> int:
    """The deepest line of the file in the error's traceback."""
    line, trace = 1, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == place:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line
