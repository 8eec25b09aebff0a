"""The table of a kernel's compiled instances, by device, dtypes and template arguments, and the launchers of its calls.

In: a device, and the order of a call's arguments. Out: a launcher. An instance is compiled or loaded at its first use.
Texts that their user edited are built as files, and their operators run in place of launchers.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import torch

from py2cu.call.argument_checks import check_arguments
from py2cu.call.launchers.engines import ASSERTION, CpuEngine, CudaEngine, Engine
from py2cu.call.launchers.launcher import LaunchFunction, Misfit, Order, write_launcher
from py2cu.call.layout import Launch, Layout, call_op, op_arguments, outputs_of, unpacked_outputs
from py2cu.call.translate import Translator
from py2cu.ir.abi.launch import REFUSED, LaunchProgram, mark_launched
from py2cu.ir.abi.parameters import Role
from py2cu.ir.abi.signature import Signature
from py2cu.options import Values, require_extents
from py2cu.source import SourceFile
from py2cu.threads import ForkSafeLock
from py2cu.translation import Artifacts, CallTranslation, TargetName, Translation

if TYPE_CHECKING:
    from py2cu.call.gradients import Gradients

Key = tuple[Any, ...]
"""The dtype of each type variable, and the value of each template argument."""
Instance = tuple[Signature, LaunchProgram, Engine]
"""The signature has the dtypes of the instance."""


class Instances:
    """The instances of one kernel.

    They are built of `files`, which a user edited, or compiled from what `translator` makes: those for `values` of the
    template arguments from one text, others from texts of their own.
    """

    def __init__(
        self, translator: Translator | None, values: Values, files: Translation | None = None, *, fma: bool = True
    ) -> None:
        self.files = files  # if there are any, only the operators of these run
        self.fma = fma
        self._lock = ForkSafeLock()
        self._translator = translator
        self._values = values
        translation = files or self.translation()
        self._python_file = translation.python_file
        self.signature: Signature = translation.signatures[0]
        self.layout = Layout(self.signature)
        self._dtype_sources = _dtype_sources(self.signature)
        self._instances: dict[tuple[TargetName, Key, bool], Instance] = {}
        self._launchers: dict[tuple[str, Order], LaunchFunction] = {}

    def run(self, device: str, values: Mapping[str, Any], launch: Launch = ()) -> Any:
        """Run the code for `device`, and return the outputs that it allocates: all, or none where one is given.

        Raises:
            RuntimeError: an argument that the kernel does not accept.
        """
        signature, on_grid = self.signature, bool(launch)
        if any(getattr(value, "is_nested", False) for value in values.values()):
            check_arguments(signature, values)  # raises: a launcher compares tensors, which ends the process here
        parameters = signature.inputs if signature.are_allocated(values) else signature.parameters
        names = [p.name for p in parameters]
        arguments = [*map(values.get, names)]
        launcher = self.launcher(device, Order.of(signature, names, arguments, on_grid=on_grid, of_call=False))
        try:
            extents = require_extents(signature.name, *launch) if launch else ()
            return launcher(*extents, *arguments)
        except REFUSED as error:
            refusal = error.with_traceback(None)  # keeps no argument alive
        check_arguments(signature, values, on_grid=on_grid)  # names the argument where the code does not
        raise refusal

    def launcher(self, device: str, order: Order, gradients: Callable[[], Gradients] | None = None) -> LaunchFunction:
        """The launcher of calls with these arguments, by position; `gradients` record calls above the dispatcher."""
        if gradients is not None:
            return self._chosen(device, order, None if order.on_grid else self._recorder(device, order, gradients))
        key = device, order
        if key not in self._launchers:
            self._launchers[key] = self._chosen(device, order, None)
        return self._launchers[key]

    def _recorder(self, device: str, order: Order, gradients: Callable[[], Gradients]) -> LaunchFunction:
        """A function of a launcher's arguments: it records the launch for autograd, and returns the outputs.

        An error of `REFUSED` is marked if the kernel has run.
        """
        below = functools.cache(partial(self.launcher, device, replace(order, of_call=False)))
        allocated = [p.name for p in self.signature.outputs if p.name not in order.names]
        are_all_allocated = len(allocated) == len(self.signature.outputs)

        def record(*values: Any) -> Any:
            names, passed, is_launched = order.names, values, False
            if not self.layout.is_of_arrays:
                given = zip(names, values, strict=True)
                complete = self.layout.complete({name: value for name, value in given if value is not None})
                names, passed = tuple(complete), tuple(complete.values())

            def run() -> Any:
                nonlocal is_launched
                result = below()(*values)
                is_launched = True
                return result

            try:
                result = gradients().recording(names).record(run, passed)
            except REFUSED as error:
                if is_launched:
                    mark_launched(error)
                raise
            if are_all_allocated:
                return result
            outputs = zip((*names, *allocated), (*passed, *unpacked_outputs(result)), strict=True)
            return outputs_of(self.signature, dict(outputs))

        return record

    @property
    def digest(self) -> str:
        """A hash of what the code does, equal in every process."""
        translation = self.files or self.translation(TargetName.CUDA)
        return hashlib.sha256(f"{translation.digest} {self.fma}".encode()).hexdigest()

    def source(self) -> SourceFile:
        """The Python, for a compiler's messages. A notebook cell has no file, but `linecache` has its lines."""
        import linecache

        return SourceFile(self._python_file, "".join(linecache.getlines(self._python_file)))

    def translation(self, target: TargetName | None = None, values: Values | None = None) -> CallTranslation:
        """What the translator makes for calls on `target`, with instances for `values`."""
        assert self._translator is not None
        with self._lock:
            return self._translator.of_calls(self._values if values is None else values, target)

    # --- the table ---

    def _chosen(self, device: str, order: Order, record: LaunchFunction | None) -> LaunchFunction:
        """A launcher; of a kernel with type variables or template arguments, a function that chooses one."""
        target, shift = TargetName(device), 6 * order.on_grid
        passed = {name: f"v{place + shift}" for place, name in enumerate(order.names)}
        constexprs = [each for each in self.layout.sources(order.given) if each[0] in self.signature.constexprs]
        parts = [f"{passed[name]}.dtype" for name in self._dtype_sources]
        for name, place, _, default, array in constexprs:
            extent = None if array is None else self._extent(name, array, passed[array])
            parts.append(extent or repr(default) if place is None else passed[name])
        if not parts:
            return self._launcher_of(target, order, (), record)
        launchers: dict[Key, LaunchFunction] = {}

        def find(key: Key, *values: Any) -> LaunchFunction:
            given = zip(order.names, values[shift:], strict=True)
            known = self.layout.complete({name: value for name, value in given if value is not None})
            key = (*key[: len(self._dtype_sources)], *(known.get(name) for name in self.signature.constexprs))
            if None in key:
                raise Misfit
            if key not in launchers:
                launchers[key] = self._launcher_of(target, order, key, record)
            return launchers[key]

        taken = ", ".join(f"v{place}" for place in range(shift + len(order.names)))
        text = f"""
def choose({taken}):
    key = ({", ".join(parts)},)
    launcher = get(key) or find(key, {taken})
    return launcher({taken})
"""
        names: dict[str, Any] = {"get": launchers.get, "find": find}
        exec(text, names)
        function: LaunchFunction = names["choose"]
        return function

    def _extent(self, name: str, array: str, passed: str) -> str | None:
        """Python for the template argument that an array determines; None if that is more than an extent."""
        dim = self.layout.extents[name, array]
        if not dim.is_extent or self.signature.array_type(array).leading:
            return None
        return f"({passed}.shape[{dim.axis}] if {passed}.dim() > {dim.axis} else None)"

    def _launcher_of(self, target: TargetName, order: Order, key: Key, record: LaunchFunction | None) -> LaunchFunction:
        dtypes, numbers = key[: len(self._dtype_sources)], key[len(self._dtype_sources) :]
        with self._lock:
            values = self._values_for(numbers)
            if self.files is not None and values is self._values:
                return self._operator(self.files.artifacts(target), order)
            place = target, key, order.on_grid and target is TargetName.CPU  # which has instances for a kernel's block
            if place not in self._instances:
                translation = self.translation(target, values)
                self._instances[place] = self._instance(target, translation, dtypes, numbers, on_grid=order.on_grid)
            signature, program, engine = self._instances[place]
            return write_launcher(signature, program, order, numbers, engine, record)

    def _instance(
        self, target: TargetName, translation: CallTranslation, dtypes: Key, numbers: Key, *, on_grid: bool
    ) -> Instance:
        signature, code = translation.signatures[0], translation.text(target)
        names = [str(dtype).removeprefix("torch.") for dtype in dtypes]
        every = zip(signature.instances or (signature,), code.programs_of(self.signature.op), strict=True)
        found = [pair for pair in every if [pair[0].dtype(array).name for array in self._dtype_sources] == names]
        if not found:
            raise RuntimeError(f"{signature.name} has no instance for {', '.join(names)}")
        instance, program = found[0]
        own, template = replace(instance.called(), name=signature.name), partial(program.template_arguments, numbers)
        if target is TargetName.CPU:
            from py2cu.build.cpu_entry import CpuInstance

            has_own_block = program.has_block_instance and not on_grid  # rule: block-of-launch
            compiled = CpuInstance(code, program.symbol, template((), is_wide=False), has_own_block)
            return own, program, CpuEngine(compiled.load(self.source))
        from py2cu.build.cuda_kernel import CudaInstance, load_kernel

        def load_for(device: int, given: tuple[bool, ...], packs: tuple[int, ...], *, is_wide: bool) -> Any:
            compiled = CudaInstance(code, program, template(given, packs, is_wide=is_wide), self.fma)
            return load_kernel(compiled, device, self.source)

        return own, program, CudaEngine(signature.name, load_for)

    def _values_for(self, numbers: Key) -> Values:
        """The values of template arguments whose instances have these numbers among them."""
        chosen = dict(zip(self.signature.constexprs, numbers, strict=True))
        integers = self.signature.constexpr_ints
        if all(chosen[name] in constexpr.values for name, constexpr in integers.items()):
            return self._values
        return {name: (chosen[name],) for name in integers}

    def _operator(self, artifacts: Artifacts, order: Order) -> LaunchFunction:
        """The operator of built files, which takes what calls below the dispatcher do."""
        from py2cu.build.library import load

        packet = getattr(getattr(torch.ops, load(artifacts, fma=self.fma, source=self.source)), self.signature.op)
        op = getattr(packet, self.layout.overload(order.names, on_grid=order.on_grid))
        arguments = op_arguments(op, [*map(self.signature.parameter, order.names)])
        shift = 6 * order.on_grid

        def run(*values: Any) -> Any:
            launch = ([*values[:3]], [*values[3:6]]) if order.on_grid else ()
            try:
                return call_op(op, arguments, dict(zip(order.names, values[shift:], strict=True)), launch)
            except RuntimeError as error:
                if not self.signature.asserts or ASSERTION not in str(error):  # rule: assert-raised
                    raise
                failure = AssertionError(str(error))  # as in Python
            raise failure

        return run


def _dtype_sources(signature: Signature) -> tuple[str, ...]:
    """For each type variable, the array whose dtype is its value."""
    sources: dict[object, str] = {}
    for parameter in sorted(signature.arrays, key=lambda p: p.role is Role.OUTPUT):
        variable = signature.dtype(parameter.name).variable
        if variable is not None and not parameter.may_be_none:
            sources.setdefault(variable, parameter.name)
    return tuple(sources.values())
