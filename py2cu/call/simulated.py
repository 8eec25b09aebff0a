"""`k.simulate`: a kernel's call, executed by CPython.

In: the arguments of a call or of an explicit launch. Out: what the call would return. What the simulator finds becomes
warnings at the kernel's lines.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from types import FunctionType
from typing import TYPE_CHECKING, Any

from py2cu.options import Extent, launch_shape

if TYPE_CHECKING:
    from py2cu.call.calls import KernelCall


class Simulator:
    """Run a kernel in CPython: `k.simulate(*args)` or `k.simulate[grid, block](*args)`.

    Takes and returns the same as a call: tensors and numbers in, outputs back, allocated if absent. A line that is
    legal Python, but whose result the compiled kernel does not promise, causes a `SimulationWarning`.

    These options go by keyword. A kernel's parameter of the same name takes precedence:

    Args:
        sanitize: True also reports races, which takes longer. Barriers that some threads miss are always reported.
        seed: permutes the order of blocks, and of threads between barriers and between their atomics.
        break_at: a block and a thread, each a number or a tuple: breakpoints stop in this thread only.

    Raises:
        TypeError: arguments that do not fit the parameters.
        RuntimeError: a tensor of the wrong device, dtype, rank, shape or layout, or a number out of range.
        SimulationError: the Python raised, or read or wrote outside an array; with the block, thread and line.
    """

    def __init__(self, function: FunctionType, prepare: Callable[[], KernelCall]) -> None:
        self._function = function
        self._prepare = prepare  # binds and checks the arguments, and knows the signature

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self._run(args, kwargs, None, None)

    def __getitem__(self, launch: tuple[Extent, Extent]) -> Callable[..., Any]:
        grid, block = launch_shape(launch, self._function.__name__)
        return lambda *args, **kwargs: self._run(args, kwargs, tuple(grid), tuple(block))  # rule: launch-mirrored

    def _run(self, args: tuple[Any, ...], kwargs: dict[str, Any], grid: Extent | None, block: Extent | None) -> Any:
        from py2cu.call.argument_checks import check_call
        from py2cu.call.layout import allocate_outputs, outputs_of
        from py2cu.simulator import SimulationWarning, simulate

        call = self._prepare()
        own = {"sanitize", "seed", "break_at"} - call.signature.keywords
        options = {name: kwargs.pop(name) for name in kwargs.keys() & own}
        _, bound = call.layout.bind(args, kwargs, on_grid=grid is not None)
        check_call(call.signature, bound, on_grid=grid is not None)  # rule: simulated-arguments
        values = allocate_outputs(call.signature, bound)  # rule: output-made
        signature = call.signature.instance(values)
        # Rounding that a translation may do differently is no finding here: `contracts` stays off.
        report = simulate(self._function, signature, values, grid=grid, block=block, contracts=False, **options)
        for finding in report.findings:
            file = finding.file or self._function.__code__.co_filename
            warnings.warn_explicit(str(finding), SimulationWarning, file, finding.line)
        return outputs_of(call.signature, values)
