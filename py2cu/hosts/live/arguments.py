"""The arguments of a call of a host function, and the Python line behind an error of its C++."""

from __future__ import annotations

import logging
import numbers
import traceback
from collections.abc import Mapping
from pathlib import Path
from types import FunctionType
from typing import Any, Final

import torch

from py2cu import devices
from py2cu.hosts.model.signatures import HostSignature
from py2cu.hosts.model.values import Kind


def check_arguments(signature: HostSignature, arguments: Mapping[str, Any]) -> None:
    """Refuse arguments of another kind than their annotation, tensors of two devices, of another dtype or shape.

    Raises:
        TypeError: an argument of another kind.
        RuntimeError: a tensor that does not fit its annotation, in the words of the C++.
    """
    from py2cu.hosts.live.extents import check_tensors

    for parameter in signature.parameters:
        value = arguments[parameter.name]
        if not _is_of(parameter.kind, value):
            what = f"{signature.name}: `{parameter.name}` takes {parameter.kind.value}, got {type(value).__name__}"
            is_whole = parameter.kind is Kind.FLOAT and isinstance(value, int) and not isinstance(value, bool)
            raise TypeError(f"{what}; pass {float(value)}" if is_whole else what)
        if parameter.kind is Kind.INT and not isinstance(value, torch.SymInt) and not -(2**63) <= value < 2**63:
            raise RuntimeError(f"{signature.name}: `{parameter.name}` = {value} does not fit int64_t")
    tensors = {name: value for name, value in arguments.items() if isinstance(value, torch.Tensor)}
    # A number on the CPU may stand beside tensors of a GPU.
    named = {name: tensor for name, tensor in tensors.items() if tensor.dim() or tensor.device.type != "cpu"}
    if len({tensor.device for tensor in named.values()}) > 1:
        try:
            devices.of_tensors(named)
        except ValueError as error:
            raise RuntimeError(f"{signature.name}: {error}") from None
    check_tensors(signature, arguments)


def _is_of(kind: Kind, value: object) -> bool:
    match kind:
        case Kind.TENSOR:
            return isinstance(value, torch.Tensor)
        case Kind.TENSORS:
            return isinstance(value, list | tuple) and all(isinstance(item, torch.Tensor) for item in value)
        case Kind.BOOL:
            return isinstance(value, bool | torch.SymBool)
        case Kind.INT:
            return isinstance(value, numbers.Integral | torch.SymInt) and not isinstance(value, bool)
        case _:  # an int would compute integers in Python
            return isinstance(value, float | torch.SymFloat)


def explain(function: FunctionType, arguments: Mapping[str, Any], error: Exception) -> Exception:
    """What Python raises where the C++ raised `error`; an error of an operator with the line that calls it.

    The Python runs once more, on tensors without memory: nothing is written.
    """
    from torch._subclasses.fake_tensor import FakeTensorMode

    logger = logging.getLogger("torch._subclasses.fake_tensor")
    logger.disabled = True  # it shows every error that operators raise
    with FakeTensorMode(allow_non_fake_inputs=True) as mode, torch.no_grad():
        fakes = {name: _fake(value, mode) for name, value in arguments.items()}
        try:
            function(**fakes)
        except Exception as found:
            frames = traceback.extract_tb(found.__traceback__)
            own = [frame for frame in frames if frame.filename == function.__code__.co_filename]
            is_of_callee = bool(frames) and frames[-1].filename == _LIBRARY  # explained already
            if is_of_callee or (own and own[-1] is frames[-1]):  # an `assert`, a `raise` or a subscript
                return found.with_traceback(None)
            if own:
                place = f"{own[-1].filename}:{own[-1].lineno}: {own[-1].line}"
                return type(error)(f"{error}\n  at {place}") if type(error) in _MADE_OF_TEXT else error
        finally:
            logger.disabled = False
    return error


_LIBRARY: Final = str(Path(__file__).with_name("library.py"))  # from which calls raise
_MADE_OF_TEXT: Final = (RuntimeError, IndexError, ValueError, TypeError, NotImplementedError)


def _fake(value: Any, mode: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return mode.from_tensor(value)
    return [_fake(item, mode) for item in value] if isinstance(value, list | tuple) else value
