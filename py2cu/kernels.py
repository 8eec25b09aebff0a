"""The kernel object: what `@kernel` makes of a function. Translated at its first use, built at its first call.

Nothing heavy is imported before it is needed: a decorated module imports fast, and one whose kernels are cached never
loads the translator.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import operator
import threading
import warnings
from collections.abc import Callable, Iterable, Mapping
from types import FunctionType
from typing import TYPE_CHECKING, Any, overload

from py2cu.live import (
    called,
    called_functions,
    constants,
    defaults_of,
    meanings,
    remember_cell,
    surroundings,
    written,
)
from py2cu.options import NO_VALUES, Block, KernelOptions, Size, Values

if TYPE_CHECKING:
    from py2cu.ir.signature import Signature
    from py2cu.runtime.calls import Call
    from py2cu.runtime.check import CheckReport
    from py2cu.source import SourceFile
    from py2cu.translation import Translation

Extent = int | tuple[int, ...]


class Kernel:
    """A kernel: callable, launchable, readable, checkable.

    Call it with tensors of one device, CUDA or CPU; outputs that are not given are allocated there. Errors: TypeError
    for arguments that do not fit the parameters, RuntimeError for a tensor of the wrong device, dtype, rank, shape or
    layout (it names the argument), `TranslationError` where the Python is outside the language.
    """

    __name__: str

    def __init__(
        self,
        function: FunctionType,
        options: KernelOptions | None = None,
        values: Values = NO_VALUES,
        *,
        fma: bool = True,
        source: SourceFile | None = None,
    ) -> None:
        if source is None:
            remember_cell(function)
        self._function = function
        self._source = source or written(function)
        self._options = options or KernelOptions()
        self._values = values
        self._fma = fma
        self._lock = threading.RLock()
        self._translator: Callable[[Values], Translation] | None = None
        self._translation: Translation | None = None
        self._call: Call | None = None
        functools.update_wrapper(self, function)

    # --- running ---

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run on the tensors' device; returns the outputs, a tuple where there are several."""
        return (self._call or self._prepare())(*args, **kwargs)

    def __get__(self, instance: object, owner: type | None = None) -> Kernel:
        """Return the kernel itself: as a class attribute it does not bind the instance.

        With this method, `help` and `inspect` treat a kernel as a routine and show its signature and docstring.
        """
        return self

    def __getitem__(self, launch: tuple[Extent, Extent]) -> Callable[..., None]:
        """`k[grid, block](*args)`: an explicit launch, every array given."""
        grid, block = _launch(launch, self.__name__)
        return functools.partial((self._call or self._prepare()).launch, grid, block)

    @property
    def simulate(self) -> Simulator:
        """The same call, executed by CPython thread by thread, where a debugger can step through it."""
        return Simulator(self)

    def check(self, *args: Any, **kwargs: Any) -> CheckReport:
        """Compare the compiled kernel with its Python, on these arguments or, given none, on invented ones."""
        from py2cu.runtime.check import check_kernel
        from py2cu.runtime.inputs import given_case

        if not args and not kwargs:
            return check_kernel(self.with_small_values(), contracts=self._fma)
        call = self._prepare()
        values = call.binder.bind(args, kwargs).values
        case = given_case(self.signature.instance(values), values)
        return check_kernel(self, [case], device=call.device_of(values), contracts=self._fma)

    def run(self, target_device: str, arguments: Mapping[str, Any]) -> None:
        """Run the code compiled for "cuda" or "cpu" in place; every array is among `arguments`."""
        self._prepare().run(target_device, arguments)

    @property
    def op(self) -> Any:
        """The torch op behind a call: for the GPU where there is one, else for the CPU.

        It takes the numbers for template arguments that there are instances for: see `with_values`.
        """
        return self._prepare().op

    # --- reading ---

    @property
    def python(self) -> FunctionType:
        """The function as written."""
        return self._function

    @property
    def cuda_source(self) -> str:
        """The `.cu`: kernel and launcher, free of torch."""
        return self.translation.cuda.kernel.text

    @property
    def cpp_source(self) -> str:
        """The `.cpp`: the torch binding."""
        return self.translation.cuda.binding.text

    @property
    def header(self) -> str:
        """The `.h`: the launcher's declaration."""
        return self.translation.cuda.header.text

    @property
    def signature(self) -> Signature:
        """What a call takes and makes."""
        return self.translation.signatures[0]

    @property
    def translation(self) -> Translation:
        """Texts, signature and notes.

        Raises:
            TranslationError: the function is outside the language.
        """
        if self._translation is None:
            with self._lock:
                self._translation = self._translation or self._translate(self._values)
        return self._translation

    def _translate(self, values: Values) -> Translation:
        """All that one kernel is translated from is what it was at the first time."""
        if self._translator is None:
            self._translator = translator(self._function, self._source, self._options)
        return self._translator(values)

    def _copy(self, **changes: Any) -> Kernel:
        """Another kernel of the same function; `changes` are arguments of the constructor."""
        arguments: dict[str, Any] = {
            "options": self._options, "values": self._values, "fma": self._fma, "source": self._source
        }  # fmt: skip
        other = Kernel(self._function, **(arguments | changes))
        other._translator = self._translator
        return other

    def with_translation(self, translation: Translation) -> Kernel:
        """The same Python with other texts, say a `.cu` edited by hand: what `check` then judges."""
        other = self._copy()
        other._translation = translation
        return other

    def with_values(self, **values: int | Iterable[int]) -> Kernel:
        """The same kernel, with instances for these numbers: `k.with_values(tile=(16, 32)).cuda_source`, `.op`.

        A template argument that is not mentioned keeps what it has, at first its default. Calls need none of this.

        Raises:
            TypeError: a name that is no `Constexpr[int]` parameter, or a number that none can be.
        """
        from py2cu.ir.extents import CONSTEXPR_MAX, is_constexpr_value

        known = self.signature.constexpr_ints
        chosen = {name: (value,) if isinstance(value, int) else tuple(value) for name, value in values.items()}
        for name, numbers in chosen.items():
            if name not in known:
                raise TypeError(f"{self.__name__} has no `Constexpr[int]` parameter `{name}`")
            if not numbers or not all(map(is_constexpr_value, numbers)):
                raise TypeError(f"`{name}` takes whole numbers from 0 to {CONSTEXPR_MAX}, got {values[name]!r}")
        if not chosen:
            return self
        return self._copy(values={**self._values, **chosen})

    def without_fma(self) -> Kernel:
        """The same kernel, compiled so that every multiplication and every addition rounds on its own."""
        other = self._copy(fma=False)
        other._translation = self._translation
        return other

    def with_small_values(self) -> Kernel:
        """The kernel that `check` invents arguments for: itself, unless a template argument has no instance yet."""
        from py2cu.runtime.inputs import small_values

        invented = small_values(self.signature).items()
        return self.with_values(**{name: tuple(v for v in values if self._takes(name, v)) for name, values in invented})

    def _takes(self, name: str, value: int) -> bool:
        """Whether there can be an instance with this value of a template argument."""
        from py2cu.diagnostics import TranslationError

        try:
            _ = self.with_values(**{name: (value,)}).translation
        except TranslationError:
            return False
        return True

    def __repr__(self) -> str:
        """Python and CUDA side by side."""
        left, right = self._sources()
        rows = [*itertools.zip_longest(left.expandtabs(4).splitlines(), right.splitlines(), fillvalue="")]
        width = max((len(a) for a, _ in rows), default=0)
        return "\n".join(f"{a:<{width}}  │  {b}".rstrip() for a, b in rows)

    def _repr_html_(self) -> str:
        """The same for a notebook."""
        import html

        cell = '<td style="vertical-align: top; text-align: left"><pre>{}</pre></td>'
        return f"<table><tr>{''.join(cell.format(html.escape(text)) for text in self._sources())}</tr></table>"

    def _sources(self) -> tuple[str, str]:
        from py2cu.diagnostics import TranslationError

        try:
            return python_text(self._function, self._source), self.cuda_source
        except TranslationError as error:
            return python_text(self._function, self._source), str(error).strip()

    def _prepare(self) -> Call:
        if self._call is None:
            with self._lock:
                if self._call is None:
                    from py2cu.runtime.calls import Call, VariantCall

                    self._call = (
                        VariantCall(self.translation, self._translate, fma=self._fma)
                        if self.signature.constexprs
                        else Call(self.translation, fma=self._fma)
                    )
        return self._call


class Simulator:
    """`k.simulate(*args)` and `k.simulate[grid, block](*args)`; returns what the call would.

    What is legal in Python but not promised by the compiled kernel is a `SimulationWarning` at the kernel's line.
    Beside the kernel's arguments it takes, by keyword, unless the kernel has a parameter of the name:

    Args:
        sanitize: True finds races as well, which takes longer; barriers that some threads miss are found anyway.
        seed: permutes the order of blocks, and of threads between barriers and between their atomics.
        break_at: a block and a thread, each a number or a tuple: breakpoints stop there alone.
    """

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._run(args, kwargs, None, None)

    def __getitem__(self, launch: tuple[Extent, Extent]) -> Callable[..., Any]:
        grid, block = _launch(launch, self._kernel.__name__)
        return lambda *args, **kwargs: self._run(args, kwargs, tuple(grid), tuple(block))

    def _run(self, args: tuple[Any, ...], kwargs: dict[str, Any], grid: Extent | None, block: Extent | None) -> Any:
        from py2cu.runtime.simulate import SimulationWarning, simulate

        call = self._kernel._prepare()
        own = {parameter.name for parameter in self._kernel.signature.parameters}
        options = {name: kwargs.pop(name) for name in ("sanitize", "seed", "break_at") if name in kwargs.keys() - own}
        bind = call.binder.bind if grid is None else call.binder.bind_in_order
        values = call.with_outputs(bind(args, kwargs).values)
        signature = self._kernel.signature.instance(values)
        # Nobody is told how far a translation may be from the results.
        report = simulate(self._kernel.python, signature, values, grid=grid, block=block, contracts=False, **options)
        for finding in report.findings:
            file = finding.file or self._kernel.python.__code__.co_filename
            warnings.warn_explicit(str(finding), SimulationWarning, file, finding.line)
        return call.result(values)


@overload
def kernel(function: FunctionType | Callable[..., Any]) -> Kernel: ...


@overload
def kernel(
    *,
    size: Size | None = ...,
    block: Block | None = ...,
    init: Mapping[str, int | float] | None = ...,
    name: str | None = ...,
    strided: bool = ...,
    coarsen: int | None = ...,
    launch_bounds: int | tuple[int, int] | None = ...,
) -> Callable[[Callable[..., Any]], Kernel]: ...


def kernel(
    function: Callable[..., Any] | None = None,
    *,
    size: Size | None = None,
    block: Block | None = None,
    init: Mapping[str, int | float] | None = None,
    name: str | None = None,
    strided: bool = False,
    coarsen: int | None = None,
    launch_bounds: int | tuple[int, int] | None = None,
) -> Kernel | Callable[[Callable[..., Any]], Kernel]:
    """Make a kernel of a function: `@kernel`, `@kernel(size=…, block=…)` or `kernel(f)`.

    Args:
        size: threads wanted in x, y, z, as extents: `"n"`, `("w", "h")`.
        block: threads of a block in x, y, z, extents as in `size`; 256, 16×16 or 8×8×8 by default.
        init: what an allocated output is filled with first, by name.
        name: what the kernel is called in C++ and as an op; the function's name by default.
        strided: take inputs of any memory layout, else an input that is not contiguous is an error.
        coarsen: elements a thread; 1 is what every kernel has.
        launch_bounds: the most threads that a block may have, or a pair of that and the least blocks that are to fit a
            multiprocessor: CUDA's `__launch_bounds__`, by which its compiler portions out registers.

    Raises:
        TypeError: `function` is no plain Python function.
    """
    options = KernelOptions(
        _as_tuple(size), _as_tuple(block), dict(init or {}), name, strided, coarsen, _as_tuple(launch_bounds)
    )

    def make(function: Callable[..., Any]) -> Kernel:
        if not isinstance(function, FunctionType):
            raise TypeError(f"@kernel takes a plain Python function, not {function!r}")
        return Kernel(function, options)

    return make if function is None else make(function)


def _as_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _launch(launch: tuple[Extent, Extent], name: str) -> tuple[list[int], list[int]]:
    try:
        grid, block = map(_extents, launch)
    except (TypeError, ValueError):
        raise TypeError(f"launch it as {name}[grid, block](...), each a whole number or a tuple") from None
    return grid, block


def _extents(value: Extent) -> list[int]:
    """One for each axis, NumPy's whole numbers as Python's."""
    return [operator.index(extent) for extent in ((value,) if hasattr(value, "__index__") else value)]


# --- from a function to its translation -----------------------------------------------------------------------------


def translator(function: FunctionType, source: SourceFile, options: KernelOptions) -> Callable[[Values], Translation]:
    """What translates a live function of `source`, as the constants around it are now.

    It takes what `Constexpr[int]` parameters are to be, by name, and asks the cache first.

    Raises:
        TranslationError: the function is outside the language, or its source is not to be had.
    """
    from py2cu.runtime.cache import memo_get, memo_put

    require_text(function, source)
    line, live, defaults = function.__code__.co_firstlineno, surroundings(function), defaults_of(function)

    def translate(values: Values) -> Translation:
        key = _fingerprint(source, function, options, values)
        found = memo_get(key)
        if found is None:
            from py2cu.pipeline import translate_function

            found = translate_function(source, line, function.__name__, options, live, values, defaults)
            memo_put(key, found)
        return found

    return translate


def require_text(function: FunctionType, source: SourceFile) -> None:
    """Refuse a function whose source has no text.

    Raises:
        TranslationError: there is none, as for a function made by `exec`.
    """
    if source.text:
        return
    from py2cu.diagnostics import Diagnostic, Severity, TranslationError
    from py2cu.source import Span

    place = Span(function.__code__.co_firstlineno, 0, function.__code__.co_firstlineno, 1)
    message = f"the source of `{function.__name__}` is not to be had"
    hint = "write the kernel in a file or a notebook cell"
    raise TranslationError([Diagnostic(Severity.ERROR, "P100", message, place, source, hint)])


def python_text(function: FunctionType, source: SourceFile) -> str:
    """The function as written, dedented."""
    import inspect
    import textwrap

    if not source.text:
        return f"def {function.__name__}(…): …"
    lines = [f"{line}\n" for line in source.text.split("\n")][function.__code__.co_firstlineno - 1 :]
    return textwrap.dedent("".join(inspect.getblock(lines))).rstrip()


def _fingerprint(file: SourceFile, function: FunctionType, options: KernelOptions, values: Values) -> str:
    """What a translation depends on: the source, the place in it, the options, template arguments, constants around it,
    and the same of the functions that it calls, each of which may be a closure's.
    """
    functions = {each: number for number, each in enumerate(called_functions(function))}
    own = [repr(options), repr(sorted(values.items())), repr(defaults_of(function))]
    parts: list[object] = [file.name, file.text, *own]
    texts: dict[str, str] = {file.name: ""}
    for each in functions:
        name = each.__code__.co_filename
        if name not in texts:
            texts[name] = written(each).text
        parts += [name, *_place(each), _constants(each), [functions[other] for other in called(each)]]
    return hashlib.sha256("\0".join(map(str, [*parts, *texts.values()])).encode()).hexdigest()


def _place(function: FunctionType) -> tuple[int, str]:
    return function.__code__.co_firstlineno, function.__name__


def _constants(function: FunctionType) -> str:
    found = {**meanings(function), **constants(function)}
    return repr(sorted((name, repr(value)) for name, value in found.items()))
