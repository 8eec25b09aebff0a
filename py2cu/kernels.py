"""The object `Kernel` that the decorator `@kernel` makes of a function.

In: a Python function and options. Out: a `Kernel`, translated at its first use and built at its first call. Heavy
modules are imported at first use: a decorated module imports fast, and a cached kernel never loads the translator.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final, TypeVar, Unpack, overload

from py2cu.call import Simulator, Translator
from py2cu.call.traced import Traced, add_backward, traced_as, traced_call, traced_launch, traced_op
from py2cu.collector import collector_paused
from py2cu.function_text import remember_cell
from py2cu.ir.abi.launch import REFUSED, has_launched
from py2cu.ir.abi.parameters import CONSTEXPR_MAX, is_constexpr_value
from py2cu.live.texts import python_text, remember_texts
from py2cu.options import NO_VALUES, Extent, KernelKeywords, KernelOptions, Values, extents_of, launch_shape
from py2cu.side_by_side import html_side_by_side, side_by_side
from py2cu.threads import ForkSafeLock

if TYPE_CHECKING:
    from py2cu.call.calls import KernelCall
    from py2cu.check import CheckReport
    from py2cu.ir.abi.signature import Signature
    from py2cu.options import LaunchShape
    from py2cu.translation import Translation

Backward = TypeVar("Backward", bound=Traced)


_ABSENT: Final = object()  # None is an argument


class Kernel(Traced):
    """A kernel that can be called, launched, simulated, checked and read as CUDA C++.

    A call takes tensors of one device, CUDA or CPU, with the dtypes and shapes of the annotations, contiguous unless
    `strided` names them, and numbers. It returns the outputs: one array, a tuple of several, or None. Outputs that
    the call leaves out are allocated on the device of the inputs.

    Raises:
        TypeError: a call's arguments do not fit the parameters.
        RuntimeError: a tensor has the wrong device, dtype, rank, shape or layout, or a number is out of range; the
            message names the argument.
        AssertionError: an `assert` of the kernel failed on the CPU.
        TranslationError: the function is outside the language.
        BuildError: a compiler refused the emitted text.
        EnvironmentLacks: a tool to build the kernel, or the device, is missing.
    """

    __name__: str
    __qualname__: str

    def __init__(
        self,
        function: Callable[..., Any],
        options: KernelOptions | None = None,
        values: Values = NO_VALUES,
        *,
        fma: bool = True,
        backwards: Iterable[Traced] = (),
    ) -> None:
        if not isinstance(function, FunctionType):
            raise TypeError(f"@kernel takes a plain Python function, not {function!r}")
        super().__init__()
        remember_cell(function)
        remember_texts(function)  # rule: text-remembered
        self._function = function
        self._options = options or KernelOptions()
        self._values = values
        self._fma = fma
        self.backwards: list[Any] = [*backwards]
        self._lock = ForkSafeLock()
        self._translator: Translator | None = None
        self._edited: Translation | None = None  # files in place of those that the translator makes
        self._call: KernelCall | None = None
        self._launchers: dict[tuple[object, ...] | int, Callable[..., Any]] = {}  # those of `_call`
        self._is_of_arrays = False  # and how these are found
        self._grids: dict[tuple[Extent, Extent], Callable[..., None]] = {}  # the launches prepared so far
        self._unchanged: Callable[[], bool] = _never  # whether the translation is up to date
        functools.update_wrapper(self, function)

    # --- running ---

    @traced_as(traced_call)
    def __call__(self, /, *args: Any, out: Any = _ABSENT, **kwargs: Any) -> Any:
        """Run on the tensors' device and return the outputs, a tuple if there are several; see the class."""
        key: tuple[object, ...] | int = len(args) if self._is_of_arrays else (*map(type, args),)
        values = args
        if kwargs:
            if out is not _ABSENT:
                kwargs["out"] = out
            values, types = (*args, *kwargs.values()), map(type, kwargs.values())
            key = (len(args), *kwargs) if self._is_of_arrays else (*map(type, args), *kwargs, *types)
        elif out is not _ABSENT:  # the usual name, without a dictionary
            key = (len(args), "out") if self._is_of_arrays else (*map(type, args), "out", type(out))
            values = (*args, out)
        if self._unchanged() and (launcher := self._launchers.get(key)) is not None:
            try:
                return launcher(*values)
            except REFUSED as error:
                if has_launched(error):
                    raise  # if not, the checks below raise an error that names the argument
        if out is not _ABSENT:
            kwargs["out"] = out
        return self._prepare().bind_and_run(args, kwargs, ())

    def __get__(self, instance: object, owner: type | None = None) -> Kernel:
        """The kernel itself, also as a class attribute; for `help` and `inspect`, this makes it a routine."""
        return self

    @traced_as(traced_launch)
    def __getitem__(self, launch: tuple[Extent, Extent]) -> Callable[..., None]:
        """Prepare an explicit launch: `k[grid, block](*args)` takes every parameter in order, and returns None.

        Args:
            launch: the grid and the block, each an integer or a tuple of one to three integers.

        Raises:
            TypeError: `launch` is not such a pair.
        """
        is_of_ints = (
            launch.__class__ is tuple and len(launch) == 2 and launch[0].__class__ is launch[1].__class__ is int
        )
        if is_of_ints and (known := self._grids.get(launch)) is not None:
            return known
        shape = launch_shape(launch, self.__name__)
        run = functools.partial(self._launch, shape, extents_of(*shape))
        if is_of_ints and len(self._grids) < 1024:
            self._grids[launch] = run
        return run

    def _launch(self, launch: LaunchShape, extents: tuple[int, ...] | None, /, *args: Any, **kwargs: Any) -> Any:
        if extents is not None and self._unchanged():
            named = (*kwargs, *map(type, kwargs.values())) if kwargs else ()  # their keys begin with None
            if (launcher := self._launchers.get((None, *map(type, args), *named))) is not None:
                try:
                    return launcher(*extents, *args, *kwargs.values())
                except REFUSED as error:
                    if has_launched(error):
                        raise  # if not, the checks below raise an error that names the argument
        return self._prepare().bind_and_run(args, kwargs, launch)

    @property
    def simulate(self) -> Simulator:
        """The same call, executed by CPython thread by thread, so that a debugger can step through it."""
        return Simulator(self._function, self._prepare)

    def check(self, /, *args: Any, **kwargs: Any) -> CheckReport:
        """Compare the compiled kernel with its Python, on these arguments or, without any, on invented ones.

        The arguments are those of a call, and are not modified. Invented cases cover many shapes and each dtype's
        extreme values. The report says what differs, and how much was compared.

        These options go by keyword. A kernel's parameter of the same name takes precedence:

        Args:
            grad: also compare the gradients with numerical derivatives, in float64 (`torch.autograd.gradcheck`).
            unordered: arrays whose elements, or rows, may come in any order: `"out"` or `("out", "rest")`. Arrays in
                one string, `"keys, values"`, are permuted together.
            race: `"same value"` accepts races that store the value that is already there.

        Raises:
            ValueError: `unordered` names no array that the kernel writes, or `race` is something else.
            TypeError: as for a call; or `grad` is true, and the kernel has no backward.
            RuntimeError, BuildError, EnvironmentLacks: as for a call.
        """
        from py2cu.check import check_call

        return check_call(self, self._prepare().layout, args, kwargs, contracts=self._fma)

    def run(self, target_device: str, arguments: Mapping[str, Any]) -> None:
        """Run the code compiled for "cuda" or "cpu" in place; `arguments` includes every array."""
        self._prepare().instances.run(target_device, arguments)

    @property
    @traced_as(traced_op)
    def op(self) -> Any:
        """The torch operator behind a call: an `OpOverload` that allocates its outputs, of the kernel as it is now.

        The overload `.out` of the same op writes given outputs and returns nothing, and `.grid` is the explicit launch.
        A kernel without `size=` has the latter alone.
        """
        return self._prepare().op

    # --- gradients ---

    @overload
    def backward(self, function: Backward, /) -> Backward: ...

    @overload
    def backward(self, function: Callable[..., Any], /) -> Kernel: ...

    @overload
    def backward(self, /, **options: Unpack[KernelKeywords]) -> Callable[[Callable[..., Any]], Kernel]: ...

    def backward(self, function: Any = None, /, **options: Unpack[KernelKeywords]) -> Any:
        """Attach a kernel that computes gradients: `@k.backward`, `@k.backward(size=…)` or `k.backward(other)`.

        The parameters of the backward, in any order, are parameters and dimensions of this kernel by their names,
        `grad_<output>` for incoming gradients, and `grad_<input>` for the gradients that it stores. Of an array that
        this kernel updates in place, `x` is the value after the call, and `grad_x` is read and overwritten. Several
        backward kernels may be attached, each for other inputs; a host function returns its gradients by these names.

        Args:
            function: a Python function, a kernel, or a host function.
            options: those of `kernel`, for a Python function.

        Returns:
            The backward, or a decorator if only options are passed.

        Raises:
            TypeError: `function` is none of these, has options already, or has this kernel as its backward.
        """

        def attach(function: Traced | Callable[..., Any]) -> Traced:
            if isinstance(function, Traced) and options:
                raise TypeError(f"`{function.__name__}` is a {function.kind} already, and has its own options")
            backward = function if isinstance(function, Traced) else Kernel(function, KernelOptions.of(**options))
            add_backward(self, backward)
            return backward

        return attach if function is None else attach(function)

    # --- reading ---

    @property
    def python(self) -> FunctionType:
        """The decorated function."""
        return self._function

    @property
    def cuda_source(self) -> str:
        """The text of the `.cu` file: kernel and launcher, independent of torch."""
        return self.translation.cuda.kernel.text

    @property
    def cpp_source(self) -> str:
        """The text of the `.cpp` file: the torch binding."""
        return self.translation.cuda.binding.text

    @property
    def header(self) -> str:
        """The text of the `.h` file: the launcher's declaration."""
        return self.translation.cuda.header.text

    @property
    def signature(self) -> Signature:
        """The parameters of a call, the launch and the outputs."""
        translation = self._edited or self._current_translator().of_calls(self._values)
        return translation.signatures[0]

    @property
    def translation(self) -> Translation:
        """All emitted files, the signature and the notes.

        Raises:
            TranslationError: the function is outside the language.
        """
        return self._edited or self._current_translator().files(self._values)

    def _current_translator(self) -> Translator:
        """The translator of the function; a new one if a name that the function looks up was rebound."""
        with self._lock:
            last = self._translator
            if last is None or not last.dependencies.unchanged():  # rule: redefined-at-use
                current = Translator(self._function, self._options)
                if last is not None and last.key == current.key:  # rebound to an equal value  # rule: redefined-equal
                    last.dependencies = current.dependencies
                else:
                    self._translator, self._call, self._launchers = current, None, {}
            assert self._translator is not None
            self._unchanged = self._translator.dependencies.unchanged
            return self._translator

    def _copy(self, **changes: Any) -> Kernel:
        """A kernel of the same function with other arguments of the constructor."""
        state = {"options": self._options, "values": self._values, "fma": self._fma, "backwards": self.backwards}
        arguments: dict[str, Any] = state | changes
        other = Kernel(self._function, **arguments)
        other._translator = self._translator
        return other

    def __reduce__(self) -> str | tuple[Any, ...]:
        """Pickle by module and name, as functions do, or else by the function and the constructor's arguments."""
        from py2cu.live.pickles import is_found_by_name, portable

        if is_found_by_name(self):
            return self.__qualname__
        given = {"values": dict(self._values), "fma": self._fma, "backwards": tuple(self.backwards)}
        return _unpickled, (portable(self._function), self._edited, {"options": self._options, **given})

    def __deepcopy__(self, memo: object = None) -> Kernel:
        """Return the kernel itself, as for functions."""
        return self

    __copy__ = __deepcopy__

    def with_translation(self, translation: Translation) -> Kernel:
        """The same Python with other emitted texts, such as an edited `.cu`; calls and `check` then use these texts."""
        other = self._copy()
        other._edited, other._unchanged = translation, _always
        return other

    def with_values(self, **values: int | Iterable[int]) -> Kernel:
        """The same kernel with instances for these template arguments: `k.with_values(tile=(16, 32)).cuda_source`.

        Other template arguments keep their instances, initially their default. Calls build missing instances.

        Args:
            values: for a `Constexpr[int]` parameter, an integer or several.

        Raises:
            TypeError: a name is no `Constexpr[int]` parameter, or a number is no valid template argument.
        """
        known = self.signature.constexpr_ints
        chosen = {name: (value,) if isinstance(value, int) else tuple(value) for name, value in values.items()}
        for name, numbers in chosen.items():
            if name not in known:
                raise TypeError(f"{self.__name__} has no `Constexpr[int]` parameter `{name}`")
            if not numbers or not all(map(is_constexpr_value, numbers)):
                raise TypeError(f"`{name}` takes whole numbers from 0 to {CONSTEXPR_MAX}, got {values[name]!r}")
        return self._copy(values={**self._values, **chosen}) if chosen else self

    def without_fma(self) -> Kernel:
        """The same kernel, compiled without fused multiply-adds: each multiplication and each addition is rounded."""
        other = self._copy(fma=False, backwards=self._with_copies(Kernel.without_fma))
        other._edited, other._unchanged = self._edited, self._unchanged
        return other

    def with_options(self, **changes: Any) -> Kernel:
        """The same kernel and its backwards with other options: `with_options(float64=True)`; see `KernelOptions`."""
        backwards = self._with_copies(lambda kernel: kernel.with_options(**changes))
        return Kernel(self._function, replace(self._options, **changes), self._values, backwards=backwards)

    def _with_copies(self, copy: Callable[[Kernel], Kernel]) -> list[Traced]:
        """The backwards, with copies of those that are kernels."""
        return [copy(each) if isinstance(each, Kernel) else each for each in self.backwards]

    def with_small_values(self) -> Kernel:
        """The kernel that `check` invents arguments for: with a few instances for template arguments without any."""
        from py2cu.check import small_values_of

        return self.with_values(**small_values_of(self))

    def __repr__(self) -> str:
        """The Python and the CUDA side by side."""
        return side_by_side(*self._sources())

    def _repr_html_(self) -> str:
        """The same for a notebook."""
        return html_side_by_side(*self._sources())

    def _sources(self) -> tuple[str, str]:
        from py2cu.diagnostics import TranslationError

        try:
            return python_text(self._function), self.cuda_source
        except TranslationError as error:
            return python_text(self._function), str(error).strip()

    def _prepare(self) -> KernelCall:
        """The object that runs calls of the function as it is now; translates if necessary."""
        if (call := self._call) is not None and self._unchanged():
            return call
        with self._lock, collector_paused():
            from py2cu.call.calls import KernelCall
            from py2cu.call.instances import Instances

            signature = self.signature
            if self._call is None:
                if signature.constexprs and self._translator is None:  # of edited files
                    self._translator = Translator(self._function, self._options)
                instances = Instances(self._translator, self._values, self._edited, fma=self._fma)
                self._call = KernelCall(instances, self.backwards)
                self._launchers, self._is_of_arrays = self._call.launchers, self._call.layout.is_of_arrays
            return self._call


def _unpickled(function: Any, texts: Translation | None, given: Mapping[str, Any]) -> Kernel:
    """A pickled kernel, of the arguments `given`; `function` may also be another kernel of the function."""
    unpickled = Kernel(getattr(function, "python", function), **given)
    return unpickled if texts is None else unpickled.with_translation(texts)


def _never() -> bool:
    """The initial `_unchanged`: the kernel is not translated yet."""
    return False


def _always() -> bool:
    """The `_unchanged` of a kernel with texts from its user: rebinding names does not replace these."""
    return True
