"""Import a user's files for the commands that run kernels, and find the kernels in them.

In: paths. Out: `LoadedFile`s, whose kernels are all translated. Errors: one `InputError` with the errors of all files,
whether Python cannot run a file or a kernel is outside the language.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from types import CodeType, ModuleType

from py2cu.cli.console import InputError, collecting, described, marked
from py2cu.diagnostics import Reporter, TranslationError
from py2cu.frontend.numba.signatures import signature_for
from py2cu.hosts.live.handle import Host
from py2cu.kernels import Kernel
from py2cu.live import is_library
from py2cu.numba.dispatcher import Dispatcher
from py2cu.numba.stand_in import imported_as_numba
from py2cu.options import NO_VALUES, Values
from py2cu.source import SourceFile
from py2cu.suggestions import did_you_mean
from py2cu.threads import with_deep_stack

ShadowedModules = dict[tuple[str, ...], dict[str, ModuleType]]
"""For each pair of folders, the modules that were imported from them and share a name with modules from elsewhere."""


@dataclass(frozen=True, slots=True)
class LoadedFile:
    """An imported file, its translated kernels and its host functions."""

    file: SourceFile
    kernels: tuple[Kernel, ...]
    hosts: tuple[Host, ...]

    def source(self) -> SourceFile:
        """The file; a method, as `build_library` takes it."""
        return self.file


def load_files(
    files: Sequence[Path],
    only: str | None,
    values: Values = NO_VALUES,
    signatures: Sequence[str] = (),
    namespace: str = "",
) -> list[LoadedFile]:
    """Import every file, and translate every kernel with these values of its `Constexpr[int]` parameters.

    Args:
        files: the paths.
        only: the name of the one kernel to load, or None for all.
        values: values of `Constexpr[int]` parameters, by name; a kernel ignores names that it does not have.
        signatures: the types of kernels under `@cuda.jit`, as texts.
        namespace: that of the launchers in the emitted C++.

    Raises:
        InputError: with the errors of all files.
    """
    done: list[LoadedFile] = []
    shadowed: ShadowedModules = {}
    with collecting() as errors:
        for number, path in enumerate(files):
            with errors.of(path):
                loaded = _load(path, number, only, shadowed, signatures)
                kernels = []
                for kernel in loaded.kernels:
                    with errors.of(path):  # translate here, so that all errors show before any build
                        kernel = kernel.with_options(namespace=namespace) if namespace else kernel
                        known = kernel.signature.constexpr_ints.keys() & values.keys()
                        kernels.append(kernel.with_values(**{name: values[name] for name in known}))
                        kernels[-1].signature  # noqa: B018
                for host in loaded.hosts:
                    with errors.of(path):
                        host.translation  # noqa: B018
                done.append(replace(loaded, kernels=tuple(kernels)))
    return done


def _load(
    path: Path, number: int, only: str | None, shadowed: ShadowedModules, signatures: Sequence[str]
) -> LoadedFile:
    file = SourceFile.read(path)
    module = _import(path, file, f"_py2cu_{number}_{path.stem}", shadowed)
    defined = {id(each): each for each in _defined_in(module, module.__name__)}
    chosen = [each for each in defined.values() if only in (None, each.__name__)]
    if not chosen:
        known = [kernel.__name__ for kernel in defined.values()]
        names = ", ".join(f"`{name}`" for name in known)
        what = f"no kernel called `{only}`" if only else "no kernel"
        hint = "decorate a function at the top level of the file or of a class with `@kernel` from py2cu"
        hint = did_you_mean(only or "", known, f"it has {names}") if names else hint
        raise InputError([f"{path}: {marked('error', 'error[P107]')}: there is {what} to import\n  hint: {hint}"], 1)
    kernels = tuple(each for each in chosen if isinstance(each, Kernel))
    kernels += tuple(
        each.kernel(signature_for(each.__name__, signatures)) for each in chosen if isinstance(each, Dispatcher)
    )
    return LoadedFile(file, kernels, tuple(each for each in chosen if isinstance(each, Host)))


def _defined_in(scope: ModuleType | type, module: str) -> Iterator[Kernel | Host | Dispatcher]:
    """The kernels and the host functions that a module and its classes define."""
    for value in vars(scope).values():
        if isinstance(value, Kernel | Host | Dispatcher) and value.__module__ == module:
            yield value
        elif isinstance(value, type) and value.__module__ == module and value is not scope:
            yield from _defined_in(value, module)


def _import(path: Path, file: SourceFile, name: str, shadowed: ShadowedModules) -> ModuleType:
    """Run the file as a module with a private name, with its folder on `sys.path`; writes no bytecode.

    If the file belongs to a package (a folder with `__init__.py`), its relative imports work.
    """
    place = os.path.abspath(path)
    module = ModuleType(name)
    module.__file__ = place
    sys.modules[name] = module
    folder, package = _package(os.path.dirname(place))
    try:
        with _searched_first((os.path.dirname(place), folder), shadowed):
            if package:
                module.__package__ = package
                importlib.import_module(package)
            with imported_as_numba() if "numba" in file.text else nullcontext():
                exec(_compiled(path, file, place), module.__dict__)
    except (InputError, TranslationError):
        raise
    except (Exception, SystemExit) as error:
        where = f"{path}:{_line_of(error, place)}"
        raise InputError([f"{where}: {marked('error', 'error')}: the file raises {described(error)}"], 1) from None
    return module


@contextmanager
def _searched_first(folders: tuple[str, ...], shadowed: ShadowedModules) -> Iterator[None]:
    """Import from these folders first, even if another file has imported a module of the same name from elsewhere.

    That module is restored afterwards. `shadowed` keeps the modules that replaced it for the next file of these
    folders.
    """
    path, elsewhere = sys.path.copy(), {name: sys.modules[name] for name in sys.modules if _is_elsewhere(name, folders)}
    for name in elsewhere:
        del sys.modules[name]
    sys.modules |= shadowed.get(folders, {})
    sys.path[:0] = dict.fromkeys(folders)
    try:
        yield
    finally:
        sys.path[:] = path
        tops = {name.partition(".")[0] for name in elsewhere}
        shadowed[folders] = {name: sys.modules[name] for name in sys.modules if name.partition(".")[0] in tops}
        for name in shadowed[folders]:
            del sys.modules[name]
        sys.modules |= elsewhere


def _is_elsewhere(name: str, folders: tuple[str, ...]) -> bool:
    """Whether `name` is imported from elsewhere, although the folders contain it or its package."""
    top = name.partition(".")[0]
    if top == "__main__" or is_library(top):
        return False
    places = (os.path.join(folder, top + end) for folder in folders for end in (f"{os.sep}__init__.py", ".py"))
    file = next(filter(os.path.isfile, places), None)
    return file is not None and file != getattr(sys.modules.get(top), "__file__", None)


def _package(folder: str) -> tuple[str, str]:
    """The folder that contains the outermost package of `folder`, and the dotted name; "" outside a package."""
    names: list[str] = []
    while os.path.isfile(os.path.join(folder, "__init__.py")):
        folder, name = os.path.split(folder)
        names.insert(0, name)
    return folder, ".".join(names)


def _compiled(path: Path, file: SourceFile, place: str) -> CodeType:
    """Compile the file.

    Raises:
        TranslationError: a syntax error, reported as by the translator.
        InputError: a syntax error that only Python reports.
    """
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
