"""The compiled code of a translated kernel: a launcher for each device, set of dtypes and template arguments.

In: the arguments of a call by name, bound and complete. Out: the outputs. Instances are compiled or loaded at their
first use. The functions here know nothing of autograd, tracing and transforms: `definition.py` has the op that does.
Texts that their user edited are built as files, and their operators run in place of launchers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from py2cu.call.argument_checks import check_arguments
from py2cu.call.launchers.engines import ASSERTION, CpuEngine, CudaEngine, Engine
from py2cu.call.launchers.launcher import LaunchFunction, Misfit, Order, write_launcher
from py2cu.call.layout import Launch, Layout, call_op, op_arguments
from py2cu.call.translate import Translator
from py2cu.ir.abi.launch import INT32_MAX, REFUSED, LaunchProgram
from py2cu.ir.abi.parameters import Role
from py2cu.ir.abi.signature import Signature
from py2cu.ir.types import ArrayType
from py2cu.options import Values, extents_of
from py2cu.source import SourceFile
from py2cu.threads import ForkSafeLock
from py2cu.translation import Artifacts, CallText, CallTranslation, TargetName, Translation


class Native:
    """The compiled code of one kernel, with instances for `values` of its template arguments.

    It is built of `files`, which a user edited, or compiled from what `translator` makes, as all further instances are.
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
        self._launchers: dict[tuple[str, Order], LaunchFunction] = {}
        self.recorder: Callable[[str, Order], LaunchFunction | None] | None = None  # of calls that autograd records

    def run(self, device: str, values: Mapping[str, Any], launch: Launch = ()) -> Any:
        """Run the code for `device`, and return the outputs that it allocates: all, or none where one is given.

        Raises:
            RuntimeError: an argument that the kernel does not accept.
        """
        allocates = self.signature.are_allocated(values)
        parameters = self.signature.inputs if allocates else self.signature.parameters
        function = self.overload(device, allocates=allocates, on_grid=bool(launch))
        try:
            return function(*(values.get(p.name) for p in parameters), *launch)
        except REFUSED as error:
            refusal = error.with_traceback(None)  # keeps no argument alive
        check_arguments(self.signature, values, on_grid=bool(launch))  # names the argument where the code does not
        raise refusal

    def overload(self, device: str, *, allocates: bool, on_grid: bool, of_call: bool = False) -> Callable[..., Any]:
        """A launcher that allocates the outputs, one that takes every array, or one that also takes grid and block.

        Its arguments are positional: the inputs or, unless it allocates, all parameters.
        """
        parameters = self.signature.inputs if allocates else self.signature.parameters
        function = self.launcher(device, Order(tuple(p.name for p in parameters), on_grid=on_grid, of_call=of_call))
        return _of_lists(function, self.signature.name) if on_grid else function

    def launcher(self, device: str, order: Order) -> LaunchFunction:
        """The launcher of calls with these arguments, by position."""
        key = device, order
        if key not in self._launchers:
            with self._lock:
                if key not in self._launchers:
                    self._launchers[key] = self._made(device, order)
        return self._launchers[key]

    @property
    def digest(self) -> str:
        """A hash of what the code does, equal in every process."""
        translation = self.files or self.translation(TargetName.CUDA)
        return hashlib.sha256(f"{translation.digest} {self.fma}".encode()).hexdigest()

    def source(self) -> SourceFile:
        """The Python, for a compiler's messages. A notebook cell has no file, but `linecache` has its lines."""
        import linecache

        return SourceFile(self._python_file, "".join(linecache.getlines(self._python_file)))

    # --- instances ---

    def _made(self, device: str, order: Order) -> LaunchFunction:
        """A launcher; of a kernel with type variables or template arguments, a function that chooses one."""
        shift = 6 * order.on_grid
        places = {name: f"v{place + shift}" for place, name in enumerate(order.names)}
        arrays = [places[name] for name in self._dtype_sources()]
        constexprs = [each for each in self.layout.sources(order.names) if each[0] in self.signature.constexprs]
        if not arrays and not constexprs:
            return self._written(device, order, (), ())
        launchers: dict[tuple[Any, ...], LaunchFunction] = {}

        def find(key: tuple[Any, ...], *values: Any) -> LaunchFunction:
            if None in key:  # a template argument was left out
                passed = dict(zip(order.names, values[shift:], strict=True))
                known = self.layout.complete({name: value for name, value in passed.items() if value is not None})
                key = (*key[: len(arrays)], *(known.get(name) for name in self.signature.constexprs))
                if None in key:
                    raise Misfit
            if key not in launchers:
                dtypes, chosen = key[: len(arrays)], key[len(arrays) :]
                launchers[key] = self._written(device, order, dtypes, chosen)
            return launchers[key]

        given = [f"{array}.dtype" for array in arrays]
        for name, _, _, default, array in constexprs:
            extent = None if array is None else self._extent(name, array, places[array])
            given.append(places.get(name) or extent or repr(default))
        return _choice(launchers, find, given, shift + len(order.names))

    def _extent(self, name: str, array: str, passed: str) -> str | None:
        """Python for the template argument that an array determines; None if that is more than an extent."""
        dim = self.layout.extents[name, array]
        if not dim.is_extent or self.signature.array_type(array).leading:
            return None
        return f"({passed}.shape[{dim.axis}] if {passed}.dim() > {dim.axis} else None)"

    def _dtype_sources(self) -> list[str]:
        """For each type variable, the array whose dtype is its value."""
        sources: dict[object, str] = {}
        for parameter in sorted(self.signature.arrays, key=lambda p: p.role is Role.OUTPUT):
            assert isinstance(parameter.type, ArrayType)
            variable = parameter.type.dtype.variable
            if variable is not None and not parameter.may_be_none:
                sources.setdefault(variable, parameter.name)
        return [*sources.values()]

    def _written(
        self, device: str, order: Order, dtypes: Sequence[torch.dtype], numbers: Sequence[int]
    ) -> LaunchFunction:
        with self._lock:
            target, values = TargetName(device), self._values_for(tuple(numbers))
            if self.files is not None and values is self._values:
                return self._operator(self.files.artifacts(target), order)
            translation = self.translation(target, values)
            signature, code = translation.signatures[0], translation.text(target)
            place = self._instance(signature, dtypes)
            instance = signature.instances[place].called() if signature.instances else signature
            program = code.programs_of(self.signature.op)[place]
            engine = self._engine(target, code, program, numbers, on_grid=order.on_grid)
            record = self.recorder(device, order) if order.records and self.recorder is not None else None
            return write_launcher(replace(instance, name=signature.name), program, order, numbers, engine, record)

    def _instance(self, signature: Signature, dtypes: Sequence[torch.dtype]) -> int:
        """The place of the instance for these dtypes."""
        names = [str(dtype).removeprefix("torch.") for dtype in dtypes]
        sources = self._dtype_sources()
        for place, candidate in enumerate(signature.instances):
            if all(candidate.dtype(source).name == name for source, name in zip(sources, names, strict=True)):
                return place
        if signature.instances:
            raise RuntimeError(f"{signature.name} has no instance for {', '.join(names)}")
        return 0

    def translation(self, target: TargetName | None = None, values: Values | None = None) -> CallTranslation:
        """What the translator makes for calls on `target`, with instances for `values`."""
        assert self._translator is not None
        with self._lock:
            return self._translator.of_calls(self._values if values is None else values, target)

    def _values_for(self, numbers: tuple[int, ...]) -> Values:
        """The values of template arguments whose instances have these numbers among them."""
        wanted = {
            name: value
            for (name, constexpr), value in zip(self.signature.constexprs.items(), numbers, strict=False)
            if name in self.signature.constexpr_ints and value not in constexpr.values
        }
        if not wanted:
            return self._values
        all_numbers = dict(zip(self.signature.constexprs, numbers, strict=True))
        self.layout.complete(all_numbers)  # refuses names that are no template arguments
        return {name: (all_numbers[name],) for name in self.signature.constexpr_ints}

    def _engine(
        self, target: TargetName, code: CallText, program: LaunchProgram, numbers: Sequence[int], *, on_grid: bool
    ) -> Engine:
        name = self.signature.name
        if target is TargetName.CPU:
            from py2cu.build.cpu_entry import CpuInstance

            template = program.template_arguments(tuple(numbers), (), is_wide=False)
            has_own_block = program.has_block_instance and not on_grid  # rule: block-of-launch
            return CpuEngine(CpuInstance(code, program.symbol, template, has_own_block).load(self.source))
        from py2cu.build.cuda_kernel import CudaInstance, load_kernel

        def load_for(device: int, given: tuple[bool, ...], packs: tuple[int, ...], *, is_wide: bool) -> Any:
            template = program.template_arguments(tuple(numbers), given, packs, is_wide=is_wide)
            instance = CudaInstance(code, program, template, self.fma)
            return load_kernel(instance, device, self.source)

        return CudaEngine(name, load_for)

    def _operator(self, artifacts: Artifacts, order: Order) -> LaunchFunction:
        """The operator of built files, which takes what calls below the dispatcher do."""
        from py2cu.build.library import load

        packet = getattr(getattr(torch.ops, load(artifacts, fma=self.fma, source=self.source)), self.signature.op)
        op = getattr(packet, self.layout.overload(order.names, on_grid=order.on_grid))
        arguments = op_arguments(op, [*map(self.signature.parameter, order.names)])
        shift = 6 * order.on_grid

        def run(*values: Any) -> Any:
            launch = ([*values[:3]], [*values[3:6]]) if order.on_grid else ()
            return call_op(op, arguments, dict(zip(order.names, values[shift:], strict=True)), launch)

        return raise_assertions(run) if self.signature.asserts else run  # rule: assert-raised


def _of_lists(launcher: LaunchFunction, kernel: str) -> LaunchFunction:
    """A launcher on a grid as the operator calls it: with lists behind the values."""

    def run(*values: Any) -> Any:
        *others, grid, block = values
        if (extents := extents_of(grid, block)) is None:
            raise RuntimeError(f"{kernel}: {_flaw('grid', grid) or _flaw('block', block)}")
        return launcher(*extents, *others)

    return run


def _flaw(name: str, extents: Sequence[int]) -> str:
    """What is wrong with the extents of a grid or a block, if anything is."""
    if not 0 < len(extents) <= 3:
        return f"`{name}` has one to three extents"
    wrong = [extent for extent in extents if not 0 < extent <= INT32_MAX]
    return f"`{name}` has an extent of {wrong[0]}" if wrong else ""


def _choice(
    launchers: Mapping[tuple[Any, ...], LaunchFunction],
    find: Callable[..., LaunchFunction],
    key: Sequence[str],
    count: int,
) -> LaunchFunction:
    """A function of `count` arguments `v0`, `v1` that calls the launcher for a key, expressions of them.

    `find` makes the launcher that is missing, from the key and the arguments.
    """
    names: dict[str, Any] = {"get": launchers.get, "find": find}
    taken = ", ".join(f"v{place}" for place in range(count))
    text = f"""
def choose({taken}):
    key = ({", ".join(key)},)
    launcher = get(key) or find(key, {taken})
    return launcher({taken})
"""
    exec(text, names)
    function: LaunchFunction = names["choose"]
    return function


# --- the operator that built files register ------------------------------------------------------------------------


def raise_assertions(op: LaunchFunction) -> LaunchFunction:
    """`op`, except that a failed `assert` of the kernel raises `AssertionError`, as in Python."""

    def call(*values: Any) -> Any:
        try:
            return op(*values)
        except RuntimeError as error:
            if ASSERTION not in str(error):
                raise
            failure = AssertionError(str(error))
        raise failure

    return call
