"""`k.simulate`: a kernel's call, executed by CPython.

In: the arguments of a call or of an explicit launch. Out: what the call would return; what the simulator finds is shown
as warnings at the kernel's lines.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from py2cu.options import Extent, launch_shape

if TYPE_CHECKING:
    from py2cu.kernels import Kernel


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
        grid, block = launch_shape(launch, self._kernel.__name__)
        return lambda *args, **kwargs: self._run(args, kwargs, tuple(grid), tuple(block))

    def _run(self, args: tuple[Any, ...], kwargs: dict[str, Any], grid: Extent | None, block: Extent | None) -> Any:
        from py2cu.simulator.simulate import SimulationWarning, simulate

        call = self._kernel._prepare()
        own = {parameter.name for parameter in self._kernel.signature.parameters}
        options = {name: kwargs.pop(name) for name in ("sanitize", "seed", "break_at") if name in kwargs.keys() - own}
        bind = call.binder.bind if grid is None else call.binder.bind_in_order
        bound = bind(args, kwargs).values
        call.binder.accept(bound)
        values = call.with_outputs(bound)
        signature = self._kernel.signature.instance(values)
        # Nobody is told how far a translation may be from the results.
        report = simulate(self._kernel.python, signature, values, grid=grid, block=block, contracts=False, **options)
        for finding in report.findings:
            file = finding.file or self._kernel.python.__code__.co_filename
            warnings.warn_explicit(str(finding), SimulationWarning, file, finding.line)
        return call.result(values)
