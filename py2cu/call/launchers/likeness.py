"""The lines of a launcher about each array by itself: how torch's dispatcher sees it, its shape, and its layout.

In: arrays of a call. Out: lines of Python that refuse what `argument_checks.py` refuses, hand over to autograd what it
records, and leave to the dispatcher what a transform or the tracer has to see.

Arrays that are like those of an earlier call need no tests of their own: torch compares all of them at once, by type,
dtype, device, number of axes, `requires_grad` and the dispatch keys in effect. Bits of conjugation and negation and
wrappers of transforms have keys of their own, and so has what is active in the thread: transforms, the tracer,
autocast, modes of dispatch but for torch's own (fake tensors). An inference tensor outside of inference mode has the
keys of any other tensor within it, so where the remembered call had no keys of autograd (`are_bare`), each call looks
for inference tensors. A second comparison, of extents and strides too, comes first: where it holds, what the settled
lines compute from the shapes is known, and the others run alone. Two earlier calls are remembered for it: below
autograd, the same arrays have other keys.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from itertools import chain
from typing import Any, Final

import torch

from py2cu.call.launchers.memory import overlaps_itself
from py2cu.dtypes import Kind
from py2cu.ir.abi.parameters import Parameter, Role
from py2cu.ir.abi.signature import Signature
from py2cu.records import record
from py2cu.source import parsed

try:
    from torch._C._dynamo.guards import TensorGuards as Guards
except ImportError:  # a torch without them: all tests, one by one
    Guards: Any = None  # type: ignore[no-redef]

PLAIN_TENSORS: Final = frozenset({torch.Tensor, torch.nn.Parameter})
"""Not of a subclass, which may dispatch on its own."""

_FACTS: Final = ("device", "needs_grad", "bare")
"""What is known of arrays of one kind: their device, whether one requires grad, and whether they `are_bare`."""
_MOST_LESSONS: Final = 16
"""So many arrays are learned; a launcher that meets two kinds in turn tests one of them array by array."""


class Likeness:
    """The arrays of earlier calls, with so many facts about a call."""

    __slots__ = ("_before", "_lessons", "_others", "alike", "same")

    def __init__(self, facts: int) -> None:
        # Whether arrays are like these; the device by its number; whether one of them requires grad; `are_bare`.
        self.alike: tuple[Callable[..., bool], int, bool, bool] = (_never, -1, False, False)
        # The same of arrays of these extents and strides, and then these.
        self.same: tuple[Any, ...] = (_never, -1, False, False, *[()] * facts)
        self._before = self.same
        self._lessons = self._others = 0

    def learn(self, *arrays: torch.Tensor) -> None:
        """Remember the kind of arrays that passed all tests."""
        if self._lessons == _MOST_LESSONS:
            return
        self._lessons += 1
        needs_grad = any(array.requires_grad for array in arrays)  # rule: likeness-grad
        are_like = _comparison(arrays, of_any_extents=True)
        self.alike = (are_like, arrays[0].get_device(), needs_grad, are_bare(*arrays))

    def remember(self, arrays: Sequence[torch.Tensor], *facts: Any) -> None:
        """Remember these arrays as `same`, with their extents and strides, after twice as many calls as the last time.

        The facts begin with `_FACTS`.
        """
        self._others += 1
        if not self._others & (self._others - 1):
            self.same = (_comparison(arrays, of_any_extents=False), *facts)

    def other(self) -> tuple[Any, ...]:
        """The other remembered call, which becomes `same`."""
        self.same, self._before = self._before, self.same
        return self.same


def _comparison(arrays: Sequence[torch.Tensor], *, of_any_extents: bool) -> Callable[..., bool]:
    """A function of as many arrays: whether these are like `arrays`, each passed as often and in the same places.

    torch takes an array that is passed twice for none, not even itself: it compares each once.
    """
    if Guards is None:
        return _never
    places: dict[int, int] = {}
    firsts = [places.setdefault(id(array), place) for place, array in enumerate(arrays)]
    distinct = [arrays[place] for place in places.values()]
    any_axes: Any = [[None] * array.dim() for array in distinct] if of_any_extents else None
    check: Callable[..., bool] = Guards(*distinct, dynamic_dims_sizes=any_axes, dynamic_dims_strides=any_axes).check
    if len(distinct) == len(arrays):
        return check
    taken, each = (", ".join(f"v{place}" for place in some) for some in (range(len(arrays)), places.values()))
    again = [f"v{place} is v{first}" for place, first in enumerate(firsts) if place != first]  # rule: likeness-twice
    compare: Callable[..., bool] = eval(f"lambda {taken}: {' and '.join([*again, f'check({each})'])}", {"check": check})
    return compare


def are_bare(*arrays: torch.Tensor) -> bool:
    """Whether an inference tensor may have the keys of these: one of them is one, or autograd's are not in effect."""
    is_below = torch._C._dispatch_tls_is_dispatch_key_excluded("AutogradFunctionality")
    return is_below or any(array.is_inference() for array in arrays)  # rule: likeness-bare


def _never(*_: torch.Tensor) -> bool:
    return False


def settle(lines: Sequence[str], known: Iterable[str], taken: Iterable[str]) -> tuple[list[str], set[str], list[str]]:
    """The statements that depend on nothing but `known` names and each other, what they define, and the other ones.

    The first compute the same for all arrays of one kind, extents and strides. `taken` are the launcher's arguments.
    Also among the others: a statement that returns; behind it, statements that raise or call something; and a statement
    that redefines a name of an earlier one of the others.
    """
    statements = [(each, [*ast.walk(each)]) for each in parsed("\n".join(lines)).body]
    settled: list[str] = []
    settled_names: set[str] = set()
    others: list[str] = []
    late: set[str] = set()  # read or defined by one of the others
    unsettled = {*taken, *(name for _, nodes in statements for name in _names(nodes, ast.Store))} - {*known}
    stays: tuple[type[ast.AST], ...] = (ast.Return,)
    for statement, nodes in statements:
        own = lines[statement.lineno - 1 : statement.end_lineno]
        read, defined = _names(nodes, ast.Load), _names(nodes, ast.Store)
        if any(isinstance(node, ast.Return) for node in nodes):
            stays = ast.Return, ast.Raise, ast.Call
        if (
            any(isinstance(node, stays) for node in nodes) or read & unsettled or defined & late
        ):  # rule: launcher-settled
            others += own
            late |= read | defined
            unsettled |= defined
        else:
            settled += own
            settled_names |= defined
            unsettled -= defined
    return settled, settled_names, others


def _names(nodes: Iterable[ast.AST], context: type[ast.expr_context]) -> set[str]:
    return {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, context)}


@record(frozen=True, slots=True)
class LikenessLines:
    """Writes the lines about `arrays`, the parameters that a call gives."""

    signature: Signature
    arrays: Sequence[Parameter]
    is_cuda: bool
    leave: str | None  # the statement that hands a call over to autograd; None below the dispatcher

    @property
    def known(self) -> Iterator[str]:
        """The names that arrays of one kind, extents and strides settle."""
        yield from _FACTS
        for name in (p.name for p in self.arrays):
            yield f"shape_{name}"
            if name in self.signature.strided:
                yield f"stride_{name}"

    def lines(
        self, settled: Sequence[str], defined: Set[str], others: Sequence[str], names: dict[str, Any]
    ) -> Iterator[str]:
        """They define `device`, its number, and what else the `others` name that the `settled` lines have `defined`."""
        computed = {*self.known, *defined}.difference(_FACTS)
        facts = sorted(computed.intersection(re.findall(r"\w+", "\n".join(others))))
        likeness = Likeness(len(facts))
        names.update({
            "likeness": likeness, "learn": likeness.learn, "remember": likeness.remember, "torch": torch,
            "tracer": torch._C._get_tracing_state, "transforms": torch._C._functorch.peek_interpreter_stack,
            "records": torch.is_grad_enabled, "inference": torch.is_inference_mode_enabled,
            "plain": PLAIN_TENSORS, "overlaps_itself": overlaps_itself, "are_bare": are_bare,
        })  # fmt: skip
        if self.is_cuda:
            names["current_device"] = torch._C._cuda_getDevice
        if not self.arrays:
            yield f"device, needs_grad = {'current_device()' if self.is_cuda else -1}, False"
            yield from settled
        else:
            passed = [f"v_{p.name}" for p in self.arrays]
            taken, remembered = ", ".join(passed), ", ".join([*_FACTS, *facts])
            yield f"is_same, {remembered} = likeness.same"
            if self.leave:  # below the dispatcher there are none
                nested = " or ".join(f"{each}.is_nested" for each in passed)
                yield f"if {nested}: raise misfit"  # torch ends the process where it compares them
            yield f"if not is_same({taken}):"
            yield f"    is_same, {remembered} = likeness.other()"
            yield f"    if not is_same({taken}):"
            lines = [
                *(f"shape_{p.name} = v_{p.name}.shape" for p in self.arrays),
                f"is_alike, {', '.join(_FACTS)} = likeness.alike",
                f"if not is_alike({taken}):",
                *(f"    {line}" for line in [*self._one_by_one(), f"learn({taken})"]),
                *chain.from_iterable(map(self._layout, self.arrays)),
                *settled,
                f"remember(({taken},), {remembered})",
            ]
            yield from (f"        {line}" for line in lines)
        if self.leave:
            for parameter in (p for p in self.arrays if p.role is not Role.INPUT):
                is_inference = f"bare and v_{parameter.name}.is_inference()"
                yield f"if {is_inference} and not inference(): raise misfit"  # rule: launcher-inference
            yield f"if needs_grad and records(): {self.leave}"  # rule: launcher-grad

    def _one_by_one(self) -> Iterator[str]:
        taken = [f"v_{p.name}" for p in self.arrays]
        if self.leave:
            yield "if transforms() is not None or tracer() is not None: raise misfit"
            yield f"if not plain.issuperset(map(type, ({', '.join(taken)},))): raise misfit"
        yield f"device = {taken[0]}.get_device()"
        if self.is_cuda:
            yield "if device < 0: raise misfit"
        yield from chain.from_iterable(map(self._of_one, self.arrays))
        if self.leave:  # after `_of_one`: under `no_grad`, its copy of a negative view requires no grad
            yield f"needs_grad = {' or '.join(f'{array}.requires_grad' for array in taken)}"
            yield f"bare = are_bare({', '.join(taken)})"

    def _of_one(self, parameter: Parameter) -> Iterator[str]:
        dtype, array = self.signature.dtype(parameter.name), f"v_{parameter.name}"
        tests = [f"{array}.dtype is not torch.{dtype.name}"]  # rule: launcher-dtype
        tests.append(f"{array}.get_device() != device" if self.is_cuda else f"not {array}.is_cpu")
        yield f"if {' or '.join(tests)}: raise misfit"
        is_lazy = f"{array}.is_neg()" + (f" or {array}.is_conj()" if dtype.kind is Kind.COMPLEX else "")
        resolve = f"{array} = {array}.resolve_conj().resolve_neg()" if parameter.role is Role.INPUT else "raise misfit"
        yield f"if {is_lazy}: {resolve}"

    def _layout(self, parameter: Parameter) -> Iterator[str]:
        """An array is contiguous, or has `stride_x`; a written one may not overlap itself."""
        array = f"v_{parameter.name}"
        if parameter.name not in self.signature.strided:
            yield f"if not {array}.is_contiguous(): raise misfit"
            return
        yield f"stride_{parameter.name} = {array}.stride()"
        if parameter.role is not Role.INPUT:
            yield f"if not {array}.is_contiguous() and overlaps_itself({array}): raise misfit"
