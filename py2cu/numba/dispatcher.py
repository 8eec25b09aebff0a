"""`@cuda.jit` and what it makes of a function: a kernel for each set of argument types.

In: a function, and the arguments of each launch. Out: a `Dispatcher`, whose kernels are py2cu's, typed by Numba's
signatures. Errors: `TypeError` for a launch that is none.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from functools import update_wrapper
from types import FunctionType
from typing import Any, Final

from py2cu.builtins.memory import DYNAMIC_BYTES
from py2cu.function_text import source_file
from py2cu.ir.abi.launch import REFUSED
from py2cu.ir.abi.parameters import Role
from py2cu.ir.abi.signature import Signature
from py2cu.kernels import Kernel
from py2cu.live import python_behind
from py2cu.numba.arrays import DeviceArray, as_tensors, on_stream
from py2cu.options import KernelOptions, extents_of, launch_shape

_NUMBERS: Final = frozenset((bool, int, float, complex))
_MOST_LAUNCHES: Final = 64


def jit(function_or_signature: Any = None, *, device: bool = False, **options: Any) -> Any:
    """Make a kernel of a function: `@cuda.jit`, `@cuda.jit("void(float32[:], int32)")`, `@cuda.jit(device=True)`.

    Args:
        function_or_signature: the function, or the types of its parameters as Numba writes them.
        device: the function is called by kernels, and not launched.
        options: Numba's; what changes no result is ignored. The translation refuses the others by name.

    Returns:
        A `Dispatcher`; the function itself with `device=True`; or a decorator.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        return function if device else Dispatcher(function, signature)

    signature = None if isinstance(function_or_signature, FunctionType) else _text(function_or_signature)
    return decorate(function_or_signature) if isinstance(function_or_signature, FunctionType) else decorate


class Dispatcher:
    """A function under `@cuda.jit`: a kernel for each set of argument types.

    Raises:
        TypeError: a call's arguments are no arrays or numbers.
        TranslationError: the function is outside the language, with the types of the call.
    """

    __name__: str

    def __init__(self, function: Callable[..., Any], signature: str | None = None) -> None:
        update_wrapper(self, function)
        self.py_func = function
        self.signature = signature
        self._kernels: dict[str, Kernel] = {}
        self._launches: dict[tuple[Any, ...], Callable[..., None]] = {}

    def __getitem__(self, launch: tuple[Any, ...]) -> Callable[..., None]:
        """Prepare a launch: `k[blocks, threads]`, then a stream of torch or 0, and bytes of dynamic shared memory."""
        if not isinstance(launch, tuple) or not 2 <= len(launch) <= 4:
            raise TypeError(f"launch it as {self.py_func.__name__}[blocks, threads](…), with a stream and bytes behind")
        if (kept := self._launches.get(launch)) is None:
            if len(self._launches) >= _MOST_LAUNCHES:
                self._launches.clear()
            kept = self._launches[launch] = _launch(self, *launch)
        return kept

    def __call__(self, *_: Any) -> None:
        raise TypeError(f"a kernel is launched: {self.py_func.__name__}[blocks, threads](…)")

    def forall(self, ntasks: int, tpb: int = 0, stream: Any = 0, sharedmem: int = 0) -> Callable[..., None]:
        """Prepare a launch of at least `ntasks` threads, `tpb` a block."""
        threads = tpb or 256
        return self[max(1, -(-ntasks // threads)), threads, stream, sharedmem]

    def kernel(self, signature: str | None = None) -> Kernel:
        """The kernel for a signature, by default that of the decorator.

        Raises:
            TranslationError: at its first use, if it has no types.
        """
        text = signature if signature is not None else self.signature
        key = "" if text is None else text
        if key not in self._kernels:
            self._kernels[key] = Kernel(self.py_func, KernelOptions(signature=text))
        return self._kernels[key]


_Prepared = Callable[[tuple[Any, ...]], bool]
"""Launches a kernel with arguments; False, without a launch, if they are of another kind or the kernel is outdated."""


def _launch(dispatcher: Dispatcher, grid: Any, block: Any, stream: Any = 0, shared_bytes: int = 0) -> Any:
    """`k[blocks, threads, stream, shared_bytes]`: called with arguments, it launches the kernel for their types."""
    import torch

    by_types: dict[tuple[object, ...], _Prepared] = {}  # where nothing is converted
    latest: _Prepared | None = None  # the last one of contiguous arrays, which refuses others

    def launch(*args: Any) -> None:
        nonlocal latest
        if latest is not None and latest(args):
            return
        values = [arg.memory if isinstance(arg, DeviceArray) else arg for arg in args]
        kinds = [
            (each.dtype if each.is_contiguous() else (each.dtype,))
            if each.__class__ is torch.Tensor
            else each.__class__
            for each in values
        ]  # fmt: skip
        key = (*map(type, args), *kinds)
        prepared = by_types.get(key)
        if prepared is None or not prepared(args):
            prepared = _launch_any(dispatcher, (grid, block), stream, shared_bytes, args)
            as_they_are = (k in _NUMBERS or isinstance(k, tuple) or type(k).__module__ == "torch" for k in kinds)
            if prepared is not None and all(as_they_are):
                by_types[key] = prepared
        elif not any(isinstance(each, tuple) for each in kinds):
            latest = prepared

    return launch


def _launch_any(
    dispatcher: Dispatcher, shape: tuple[Any, Any], stream: Any, shared_bytes: int, args: Sequence[Any]
) -> _Prepared | None:
    """Find the kernel for the arguments, and launch it. Out: what launches others of these types, if anything can.

    Raises:
        RuntimeError, TypeError, ValueError: an argument that the kernel does not accept.
    """
    is_simulated = os.environ.get("NUMBA_ENABLE_CUDASIM") == "1"
    with as_tensors(args) as (values, only_read):
        types = f"({', '.join(map(_type_of, values))},)" if values else "()"
        kernel = dispatcher.kernel(dispatcher.signature or types)
        signature = kernel.signature
        only_read |= _only_read(signature, args)
        takes_bytes = DYNAMIC_BYTES in signature.keywords and len(signature.parameters) == len(values) + 1
        values = [*values, shared_bytes] if takes_bytes else values
        launch = (kernel.simulate if is_simulated else kernel)[shape]
        with on_stream(stream):
            launch(*values, **({"sanitize": True} if is_simulated else {}))
    if takes_bytes or is_simulated or stream != 0:
        return None
    is_shared = not {*map(type, args)} <= {DeviceArray, *_NUMBERS}  # with torch, which has to see the launch
    launcher = kernel._prepare().launcher_on_grid(values, of_call=is_shared)
    extents = extents_of(*launch_shape(shape, signature.name))
    return _written(args, kernel._unchanged, launcher, extents) if launcher and extents else None


def _written(
    args: Sequence[Any], is_current: Callable[[], bool], launch: Callable[..., object], extents: Sequence[int]
) -> _Prepared:
    """A function that launches arguments of the types of `args`, written out for them; `launch` tests the rest."""
    names: dict[str, Any] = {"is_current": is_current, "launch": launch, "refused": REFUSED}
    names |= {f"t{place}": type(arg) for place, arg in enumerate(args)}
    taken = "".join(f"a{place}, " for place in range(len(args)))
    tests = "".join(f"a{place}.__class__ is t{place} and " for place in range(len(args)))
    tensors = (f"a{place}" + ".memory" * isinstance(arg, DeviceArray) for place, arg in enumerate(args))
    text = f"""
def launch_these(args):
    try:
        [{taken}] = args
        if not ({tests}is_current()): return False
        launch({", ".join([*map(str, extents), *tensors])})
    except refused:
        return False
    return True
"""
    exec(text, names)
    function: _Prepared = names["launch_these"]
    return function


def _only_read(signature: Signature, args: Sequence[Any]) -> set[int]:
    """The ids of the arguments that the kernel only reads; ValueError for a read-only array of NumPy that it writes."""
    pairs = [*zip(signature.with_tuples().parameters, args, strict=False)]
    written = [(p.name, value) for p, value in pairs if p.is_array and p.role is not Role.INPUT]
    for name, value in written:
        if getattr(getattr(value, "flags", None), "writeable", True) is False:
            raise ValueError(f"`{signature.name}` writes `{name}`, which is a read-only array")
    return {id(value) for _, value in pairs} - {id(value) for _, value in written}


def python_of(function: Any) -> FunctionType | None:
    """The Python function behind a dispatcher of Numba or of its simulator, and one that stands under `@cuda.jit`.

    None for any other object, and for a function with annotations.
    """
    if isinstance(function, FunctionType):
        line = "" if function.__annotations__ else source_file(function).line(function.__code__.co_firstlineno)
        return function if re.match(r"\s*@.*\bjit\b", line) else None
    return python_behind(function)


def _text(signature: Any) -> str | None:
    """The text of a signature: a string, or type objects; None for several, of which a launch chooses by its types."""
    if signature is None or isinstance(signature, str):
        return signature
    if isinstance(signature, list):
        return _text(signature[0]) if len(signature) == 1 else None
    items = signature if isinstance(signature, tuple) else getattr(signature, "args", None)
    return str(signature) if items is None else f"({', '.join(map(_spelled, items))},)"


def _spelled(type_: Any) -> str:
    """`float32[:, ::1]` for Numba's `array(float32, 2d, C)`, a tuple's items; other types by their names."""
    rank = getattr(type_, "ndim", None)
    if rank is None:
        return str(_text(getattr(type_, "types", type_)))
    last = "::1" if getattr(type_, "layout", "A") == "C" else ":"
    return f"{type_.dtype}[{', '.join((*[':'] * (rank - 1), last))}]"


def _type_of(value: Any) -> str:
    """The type of an argument, as signatures say it: Python's numbers take the type of what they meet."""
    if isinstance(value, bool | int | float | complex) and type(value).__module__ == "builtins":
        return type(value).__name__
    if isinstance(value, tuple):
        return f"({', '.join(map(_type_of, value))},)"
    if not hasattr(value, "dtype") or (value.ndim and not hasattr(value, "is_contiguous")):
        raise TypeError(f"a kernel takes arrays, numbers and tuples of numbers, not {value!r}")
    dtype = str(value.dtype).removeprefix("torch.")
    rank = value.ndim
    if rank == 0:
        return dtype if not hasattr(value, "is_contiguous") else f'Array({dtype}, 0, "C")'
    return f"{dtype}[{', '.join((*[':'] * (rank - 1), '::1' if value.is_contiguous() else ':'))}]"
