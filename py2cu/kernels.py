"""The kernel object: what `@kernel` makes of a function. Translated at its first use, built at its first call.

Nothing heavy is imported before it is needed: a decorated module imports fast, and one whose kernels are cached never
loads the translator.
"""

from __future__ import annotations

import functools
import itertools
import threading
from collections.abc import Callable, Iterable, Mapping
from types import FunctionType
from typing import TYPE_CHECKING, Any, overload

from py2cu.call.simulated import Simulator
from py2cu.call.translate import Translator, python_text, remember_texts
from py2cu.function_text import remember_cell
from py2cu.options import NO_VALUES, Block, Extent, KernelOptions, Size, Values, launch_shape

if TYPE_CHECKING:
    from py2cu.call.plan import KernelCall
    from py2cu.check.report import CheckReport
    from py2cu.ir.abi.signature import Signature
    from py2cu.translation import Translation


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
    ) -> None:
        remember_cell(function)
        remember_texts(function)
        self._function = function
        self._options = options or KernelOptions()
        self._values = values
        self._fma = fma
        self._lock = threading.RLock()
        self._translator: Translator | None = None
        self._translation: Translation | None = None
        self._call: KernelCall | None = None
        self._unchanged: Callable[[], bool] = _never  # whether what was translated is what Python runs now
        functools.update_wrapper(self, function)

    # --- running ---

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run on the tensors' device; returns the outputs, a tuple where there are several."""
        call = self._call
        if call is None or not self._unchanged():
            call = self._prepare()
        return call(args, kwargs)

    def __get__(self, instance: object, owner: type | None = None) -> Kernel:
        """Return the kernel itself: as a class attribute it does not bind the instance.

        With this method, `help` and `inspect` treat a kernel as a routine and show its signature and docstring.
        """
        return self

    def __getitem__(self, launch: tuple[Extent, Extent]) -> Callable[..., None]:
        """`k[grid, block](*args)`: an explicit launch, every array given."""
        return functools.partial(self._launch, *launch_shape(launch, self.__name__))

    def _launch(self, grid: list[int], block: list[int], /, *args: Any, **kwargs: Any) -> None:
        call = self._call
        if call is None or not self._unchanged():
            call = self._prepare()
        call(args, kwargs, (grid, block))

    @property
    def simulate(self) -> Simulator:
        """The same call, executed by CPython thread by thread, where a debugger can step through it."""
        return Simulator(self._function, self._prepare)

    def check(self, *args: Any, **kwargs: Any) -> CheckReport:
        """Compare the compiled kernel with its Python, on these arguments or, given none, on invented ones.

        By keyword, unless the kernel has a parameter of the name:

        Args:
            unordered: arrays whose elements, or rows, may come in any order: `"out"` or `("out", "rest")`. Those of
                one string, `"keys, values"`, are rearranged together.
            race: `"same value"` accepts threads that race but write the value that is there.

        Raises:
            ValueError: `unordered` names no array that the kernel writes, or `race` is something else.
        """
        from py2cu.check.cases import user_case
        from py2cu.check.progress import progress_bar
        from py2cu.check.run import check_kernel

        own = {parameter.name for parameter in self.signature.parameters}
        options = {name: kwargs.pop(name) for name in ("unordered", "race") if name in kwargs.keys() - own}
        with progress_bar(f"checking {self.__name__}") as progress:
            if not args and not kwargs:
                return check_kernel(self.with_small_values(), contracts=self._fma, progress=progress, **options)
            call = self._prepare()
            values = call.binder.bind(args, kwargs).values
            device = call.binder.accept(values)
            case = user_case(self.signature.instance(values), values)
            return check_kernel(self, [case], device=device, contracts=self._fma, progress=progress, **options)

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
        if self._translation is None or not self._unchanged():
            with self._lock:
                translator = self._current_translator()
                self._translation = self._translation or translator(self._values)
                self._unchanged = translator.dependencies.unchanged
        return self._translation

    def _current_translator(self) -> Translator:
        """The translator of the function; a new one if a name that the function looks up was rebound."""
        last = self._translator
        if last is None or not last.dependencies.unchanged():
            made = Translator(self._function, self._options)
            if last is not None and last.key == made.key:  # bound anew to what it was
                last.dependencies = made.dependencies
            else:
                self._translator, self._translation, self._call = made, None, None
        assert self._translator is not None
        return self._translator

    def _copy(self, **changes: Any) -> Kernel:
        """Another kernel of the same function; `changes` are arguments of the constructor."""
        arguments: dict[str, Any] = {"options": self._options, "values": self._values, "fma": self._fma}
        other = Kernel(self._function, **(arguments | changes))
        other._translator = self._translator
        return other

    def with_translation(self, translation: Translation) -> Kernel:
        """The same Python with other texts, say a `.cu` edited by hand: what `check` then judges."""
        other = self._copy()
        other._translation, other._unchanged = translation, _always
        return other

    def with_values(self, **values: int | Iterable[int]) -> Kernel:
        """The same kernel, with instances for these numbers: `k.with_values(tile=(16, 32)).cuda_source`, `.op`.

        A template argument that is not mentioned keeps what it has, at first its default. Calls need none of this.

        Raises:
            TypeError: a name that is no `Constexpr[int]` parameter, or a number that none can be.
        """
        from py2cu.ir.abi.parameters import CONSTEXPR_MAX, is_constexpr_value

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
        other._translation, other._unchanged = self._translation, self._unchanged
        return other

    def with_small_values(self) -> Kernel:
        """The kernel that `check` invents arguments for: itself, unless a template argument has no instance yet."""
        from py2cu.check.sizes import small_values

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
            return python_text(self._function), self.cuda_source
        except TranslationError as error:
            return python_text(self._function), str(error).strip()

    def _prepare(self) -> KernelCall:
        """What calls the kernel as it is now."""
        with self._lock:
            translation = self.translation
            if self._call is None:
                from py2cu.call.plan import KernelCall
                from py2cu.call.variants import VariantCall

                if translation.signatures[0].constexprs:
                    self._translator = self._translator or Translator(self._function, self._options)
                    self._call = VariantCall(translation, self._translator, fma=self._fma)
                else:
                    self._call = KernelCall(translation, fma=self._fma)
            return self._call


def _never() -> bool:
    """Nothing is translated yet."""
    return False


def _always() -> bool:
    """The translation was given, whatever Python runs."""
    return True


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
