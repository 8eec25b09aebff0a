"""Source text → the kernels in it, as LibCST functions with their positions.

In: a `SourceFile`. Out: a `Module` with one `KernelSource` for every function under `@py2cu.kernel`, however the
decorator was imported, or under the `@NAME.backward` of such a function; None, after a diagnostic, if the text is not
valid Python. No user code runs.
"""

from __future__ import annotations

import ast
import functools
import unicodedata
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType

import libcst as cst

from py2cu import threads
from py2cu.diagnostics import Reporter
from py2cu.frontend.names.environment import Environment
from py2cu.frontend.names.redefinitions import redefined
from py2cu.frontend.names.reexports import Reexports
from py2cu.frontend.names.syntax import Statement, dotted, flatten, is_named, suites
from py2cu.frontend.source import nesting
from py2cu.frontend.source.lambdas import is_lambda, lambda_line, name_lambdas
from py2cu.frontend.source.positions import Positions, Rebinder
from py2cu.frontend.source.prune_source import prune
from py2cu.function_text import source_file
from py2cu.source import SourceFile, Span, parsed

KERNEL_DECORATOR = "py2cu.kernel"
NUMBA_DECORATOR = "numba.cuda.jit"
LAMBDA = "<lambda>"
"""What Python calls a function without a name."""
_BROKEN = "fix it: a file that Python cannot run cannot be translated either"
_DEEP = "break long expressions into several assignments, and long `elif` chains into a loop or a lookup in an array"


@dataclass(frozen=True, slots=True)
class KernelSource:
    """A kernel function in its file: the node, its decorator (None for `kernel(f)`), and the environment around it.

    `signature` is the one that the command line gives to a kernel under `@cuda.jit`.
    """

    function: cst.FunctionDef
    decorator: cst.Decorator | None
    environment: Environment
    signature: str | None = None

    @property
    def is_numba(self) -> bool:
        """Whether the function is under `@cuda.jit` of Numba, and not under `@kernel`."""
        return self.decorator is not None and self.environment.decorates(self.decorator.decorator) == NUMBA_DECORATOR

    @property
    def forward(self) -> cst.FunctionDef | None:
        """The kernel whose gradients this one computes, if the decorator says so."""
        node = None if self.decorator is None else self.environment.decorator(self.decorator.decorator)
        function = node.func if isinstance(node, cst.Call) else node
        return None if function is None else self.environment.forward(function)


@dataclass(frozen=True, slots=True)
class Module:
    """A parsed file."""

    file: SourceFile
    positions: Positions
    kernels: tuple[KernelSource, ...]
    functions: tuple[KernelSource, ...]
    environment: Environment  # of its top level
    body: Sequence[Statement]  # without the statements that were pruned

    def span(self, node: cst.CSTNode) -> Span:
        """The position of `node`."""
        return self.positions.span(node)

    def function_at(self, line: int, name: str) -> KernelSource | None:
        """The function that Python calls `name`, whose `def`, or one of its decorators, is on `line`."""
        candidates = (source for source in self.functions if python_name(source.function, self.positions) == name)
        return next((source for source in candidates if stands_at(source.function, line, self.positions)), None)

    def is_here(self, node: cst.FunctionDef, function: FunctionType) -> bool:
        """Whether `node` defines the live `function`, by the line and the text of its code object."""
        return defines(node, function, self.file, self.positions)


def python_name(node: cst.FunctionDef, positions: Positions) -> str:
    """What Python calls the function."""
    return LAMBDA if is_lambda(node, positions) else node.name.value  # rule: lambda-name


def stands_at(node: cst.FunctionDef, line: int, positions: Positions) -> bool:
    """Whether the `def` or the `lambda` of `node`, or one of its decorators, is on `line`."""
    if is_lambda(node, positions):
        return lambda_line(node, positions) == line
    def_line = positions.span(node.name).line
    return min([def_line, *(positions.span(decorator).line for decorator in node.decorators)]) <= line <= def_line


def defines(node: cst.FunctionDef, function: FunctionType, file: SourceFile, positions: Positions) -> bool:
    """Whether `node` of `file` defines the live `function`, by the line and the text of its code object."""
    code = function.__code__
    is_named = code.co_filename == file.name and code.co_name == python_name(node, positions)
    return is_named and stands_at(node, code.co_firstlineno, positions) and source_file(function).text == file.text


@dataclass(frozen=True, slots=True)
class _Parsed:
    """The tree of a pruned text, and the names that only the removed part binds."""

    tree: cst.Module
    positions: Positions
    pruned_names: frozenset[str]


class _NoPython(Exception):
    """A text is not valid Python; the arguments are those of `Reporter.error`."""


def read_module(
    file: SourceFile, reporter: Reporter, live: Mapping[str, object] | None = None, wanted: str | None = None
) -> Module | None:
    """Parse `file` and find its kernels; None, after a diagnostic, if it is not valid Python.

    Undecorated functions that no kernel mentions are skipped, except those named `wanted`.
    """
    try:
        parsed = _parse(file.text, wanted)
    except _NoPython as error:
        reporter.error(*error.args)
        return None
    environment = Environment(
        live=live or {},
        pruned_names=parsed.pruned_names,
        bound_elsewhere=dict(_rebound(parsed.positions.rebinders, parsed.positions.named.get(None, ()))),
        named={
            node: tuple(named) for node, named in parsed.positions.named.items() if isinstance(node, cst.FunctionDef)
        },
        reexports=None if live else Reexports(Path(file.name).parent),
    )
    environment.read(parsed.tree.body)
    if live:
        positions = parsed.positions
        environment.ask_live(redefined(environment, live, lambda node, f: defines(node, f, file, positions)))
    functions = tuple(_functions(parsed.tree.body, environment))
    kernels = tuple(source for source in functions if source.decorator is not None)
    return Module(file, parsed.positions, kernels, functions, environment, parsed.tree.body)


@functools.lru_cache(maxsize=4)  # shared by the kernels of a file, which are read one by one
def _parse(text: str, wanted: str | None) -> _Parsed:
    """Parse a text and prune it.

    Python's own parser runs first: its messages are better, and LibCST's parser ends the process on deep nesting.

    Raises:
        _NoPython: it cannot be parsed.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python itself reports invalid escapes
            part = prune(text, parsed(text), wanted)
            remaining = ast.Module(part.statements, [])
            if nesting.is_deep(remaining):
                if (nested := nesting.find_nested(remaining)) is not None:
                    line, column = nested.node.lineno, nested.node.col_offset
                    column = len(SourceFile("", text).line(line).encode()[:column].decode())
                    raise _NoPython("P102", nested.reason, Span(line, column, line, column + 1), nested.hint)
                if not threads.is_deep():  # LibCST's parser would end the process
                    raise threads.StackWanted
            compile(remaining, "<kernels>", "exec", dont_inherit=True)  # finds a stray `break` and a doubled parameter
            tree = cst.parse_module(part.text)
    except SyntaxError as error:
        line, column = max(1, error.lineno or 1), max(0, (error.offset or 1) - 1)
        is_one_line = error.end_lineno == error.lineno and (error.end_offset or 0) > (error.offset or 1)
        end = (error.end_offset or 1) - 1 if is_one_line else column + 1
        raise _NoPython("P101", f"not valid Python: {error.msg}", Span(line, column, line, end), _BROKEN) from None
    except cst.ParserSyntaxError as error:
        line, column = max(1, error.raw_line), max(0, error.raw_column - 1)
        place = Span(line, column, line, column + 1)
        raise _NoPython("P101", f"not valid Python: {error.message}", place, _BROKEN) from None
    except (RecursionError, MemoryError) as error:
        if isinstance(error, RecursionError) and not threads.is_deep():
            raise
        raise _NoPython("P102", "the source is nested too deeply to parse", Span(1, 0, 1, 1), _DEEP) from None
    positions = Positions(tree)
    _normalise(positions.foreign)
    name_lambdas(tree, positions)
    return _Parsed(tree, positions, part.pruned_names)


def _normalise(names: Iterable[cst.Name]) -> None:
    """Normalise names as Python does: `ﬁ`, one letter, is `fi`.

    LibCST keeps the written form. The nodes are changed in place, since positions are found by identity.
    """
    for name in names:
        object.__setattr__(name, "value", unicodedata.normalize("NFKC", name.value))


def _rebound(rebinders: Iterable[Rebinder], named: Iterable[cst.NamedExpr]) -> Iterator[tuple[str, cst.CSTNode]]:
    """The names that these nodes bind."""
    yield from ((dotted(each.target), each) for each in named)
    for node in rebinders:
        yield from ((item.name.value, item.name) for item in node.names)


def _functions(body: Iterable[Statement], scope: Environment) -> Iterator[KernelSource]:
    """Every function under `body`, however deep, with the environment around it."""
    for statement in body:
        match statement:
            case cst.FunctionDef():
                yield KernelSource(statement, _kernel_decorator(statement, scope), scope)
                if any(isinstance(inner, cst.FunctionDef | cst.ClassDef) for inner in flatten(statement.body.body)):
                    yield from _functions(statement.body.body, scope.inner(statement))
            case cst.ClassDef(body=block):
                yield from _functions(block.body, scope)
            case _:
                for suite in suites(statement):
                    yield from _functions(suite, scope)


def _kernel_decorator(function: cst.FunctionDef, scope: Environment) -> cst.Decorator | None:
    kinds = {scope.decorates(each.decorator): each for each in reversed(function.decorators)}
    if "py2cu.host" in kinds:
        return None
    jit = None if KERNEL_DECORATOR in kinds else kinds.get(NUMBA_DECORATOR)
    return jit if jit is not None and launches(function, jit.decorator, scope) else kinds.get(KERNEL_DECORATOR)


def launches(function: cst.FunctionDef, jit: cst.BaseExpression, scope: Environment) -> bool:
    """Whether Numba launches the function, which kernels call if it is a `device` function or returns a value."""
    call = scope.decorator(jit)
    is_device = isinstance(call, cst.Call) and any(
        arg.keyword is not None and arg.keyword.value == "device" and is_named(arg.value, "True") for arg in call.args
    )
    statements = flatten(function.body.body)
    return not (is_device or any(isinstance(each, cst.Return) and each.value is not None for each in statements))
