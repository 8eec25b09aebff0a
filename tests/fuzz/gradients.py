"""Random kernels with backwards: `torch.autograd.gradcheck` in float64, and `vmap` against a call for each element.

In: a seed and numbers of kernels. Out: the faults. A kernel is a sum of products of elementary functions, and the
generator writes the backward by the rules for their derivatives (`RULES`). The operators are the real ones; only the
compiled code comes from one library for all kernels (`tests/support/libraries.py`), since a build takes seconds each.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import torch

from py2cu.call.instances import Instances
from py2cu.call.launchers.launcher import Order
from py2cu.call.layout import allocate_outputs, returned
from py2cu.kernels import Kernel
from tests.fuzz.judge import run_cells
from tests.support.libraries import Device, Setting, build

# A function of `u`, and its derivative.
RULES: Final = {
    "sine": ("math.sin({u})", "math.cos({u})"),
    "cosine": ("math.cos({u})", "-math.sin({u})"),
    "bell": ("math.exp(-({u}) * ({u}))", "-2 * ({u}) * math.exp(-({u}) * ({u}))"),
    "root": ("math.sqrt(1 + ({u}) ** 2)", "({u}) / math.sqrt(1 + ({u}) ** 2)"),
    "quotient": ("1 / (1.5 + ({u}) ** 2)", "-2 * ({u}) / (1.5 + ({u}) ** 2) ** 2"),
    "cube": ("({u}) ** 3", "3 * ({u}) ** 2"),
    "sign": ("(({u}) if i % 2 == 0 else -0.5 * ({u}))", "(1 if i % 2 == 0 else -0.5)"),
}
EXTENTS: Final = {"n": 5, "m": 3, "q": 2}


@dataclass(frozen=True, slots=True)
class Term:
    """An expression, and its derivatives by the element, an array and its indices, which it is a function of."""

    text: str
    derivatives: Mapping[tuple[str, str], str]


def plus(a: Term, b: Term) -> Term:
    places = dict.fromkeys([*a.derivatives, *b.derivatives])
    addends = {place: [t.derivatives[place] for t in (a, b) if place in t.derivatives] for place in places}
    return Term(f"{a.text} + {b.text}", {place: " + ".join(texts) for place, texts in addends.items()})


def times(a: Term, b: Term) -> Term:
    left = Term("", {place: f"({text}) * ({b.text})" for place, text in a.derivatives.items()})
    right = Term("", {place: f"({text}) * ({a.text})" for place, text in b.derivatives.items()})
    return Term(f"({a.text}) * ({b.text})", plus(left, right).derivatives)


def composed(function: str, derivative: str, inner: Term) -> Term:
    outer = derivative.format(u=inner.text)
    inner_derivatives = {place: f"({outer}) * ({text})" for place, text in inner.derivatives.items()}
    return Term(function.format(u=inner.text), inner_derivatives)


class Writer:
    """Writes the source of one kernel `f` and its backwards."""

    def __init__(self, seed: int, number: int) -> None:
        self.random = random.Random(f"{seed} {number}")
        self.is_flat = self.random.random() < 0.7
        self.at = "i" if self.is_flat else "i, j"
        self.shapes = {"x": "n" if self.is_flat else "n q"}
        whole = self.shapes["x"]
        self.shapes |= {name: whole for name in ("w", "v") if self.random.random() < 0.5}
        self.shapes |= {"b": "m"} if self.random.random() < 0.4 else {}
        self.numbers = {"by": self.random.choice(["float", "float = 1.5", "float | None = None"])}
        self.is_in_place = self.random.random() < 0.2
        self.is_optional = self.random.random() < 0.3  # `bias` may be None
        self.outputs = ["x"] if self.is_in_place else ["out", "other"][: self.random.choice([1, 1, 2])]

    def element(self, name: str) -> Term:
        place = self.at
        if self.shapes[name] == "m":
            place = f"i % len({name})"
        elif self.random.random() < 0.15:
            place = self.at.replace("i", f"(i + 1) % len({name})", 1)
        return Term(f"{name}[{place}]", {(name, place): "1"})

    def atom(self) -> Term:
        arrays = [name for name in self.shapes if not (self.is_in_place and name == "x")]
        if arrays and self.random.random() < 0.8:
            return self.element(self.random.choice(arrays))
        by = "(0.75 if by is None else by)" if "None" in self.numbers["by"] else "by"
        return Term(self.random.choice([by, "float(k[i])", "0.5", "-1.25"]), {})

    def term(self, depth: int) -> Term:
        if depth == 0:
            return self.atom()
        kind = self.random.choice(["sum", "product", *RULES])
        if kind in RULES:
            return composed(*RULES[kind], self.term(depth - 1))
        combine = plus if kind == "sum" else times
        combined = combine(self.term(depth - 1), self.term(depth - 1))
        return Term(f"({combined.text})", combined.derivatives)

    def output(self, name: str) -> Term:
        term = plus(self.term(2), times(Term("0.5", {}), self.element("w" if "w" in self.shapes else "x")))
        if self.is_in_place:
            term = plus(Term(f"0.5 * x[{self.at}]", {("x", self.at): "0.5"}), self.term(2))
        if self.is_optional:
            added = f"(0.0 if bias is None else 2 * bias[{self.at}])"
            term = plus(term, Term(added, {("bias", self.at): "2"}))
        if not self.is_in_place and self.random.random() < 0.3:  # the backward reads the output
            term = composed("math.tanh({u})", f"1 - {name}[{self.at}] ** 2", term)
        return term

    def source(self) -> str:
        terms = {name: self.output(name) for name in self.outputs}
        whole = f'Float64[Tensor, "{self.shapes["x"]}"]'
        parameters = [f'{name}: Float64[Tensor, "{shape}"]' for name, shape in self.shapes.items()]
        parameters += ['k: Int64[Tensor, "n"]', *(f"{name}: {whole}" for name in self.outputs if name != "x")]
        by = f"by: {self.numbers['by']}"
        parameters += [by] + [f"bias: {whole} | None = None"] * self.is_optional
        body = [f"{name}[{self.at}] = {term.text}" for name, term in terms.items()]
        return "\n\n\n".join([self.kernel("@kernel", "f", parameters, body), *self.backwards(terms)])

    def backwards(self, terms: Mapping[str, Term]) -> Iterator[str]:
        """One backward for all gradients, or one for each input; that of an array updated in place comes last."""
        targets = sorted({name for term in terms.values() for name, _ in term.derivatives}, key="bwvxi".find)
        targets = sorted(targets, key=lambda name: name == "x")
        groups = [targets] if self.random.random() < 0.5 else [[target] for target in targets]
        for number, group in enumerate(groups):
            body = [line for target in group for line in self.gradient(target, terms)]
            yield self.kernel("@f.backward", f"g{number}", [*self.parameters(group, terms, body)], body)

    def gradient(self, target: str, terms: Mapping[str, Term]) -> Iterator[str]:
        addends = [
            (place, f"grad_{output}[{self.at}] * ({text})")
            for output, term in terms.items()
            for (name, place), text in term.derivatives.items()
            if name == target
        ]
        if all(place == self.at for place, _ in addends):
            yield f"grad_{target}[{self.at}] = {' + '.join(text for _, text in addends)}"
        else:
            yield from (f"atomic.add(grad_{target}, ({place}), {text})" for place, text in addends)

    def parameters(self, group: Sequence[str], terms: Mapping[str, Term], body: Sequence[str]) -> Iterator[str]:
        """What the statements name, in any order; a parameter with a default comes last."""
        names = set(re.findall(r"\b[a-z_]+\b", " ".join(body)))
        shapes = {**self.shapes, **dict.fromkeys(("out", "other", "bias"), self.shapes["x"])}
        arrays = [name for name in shapes if name in names]
        arrays += [f"grad_{name}" for name in dict.fromkeys([*group, *terms]) if f"grad_{name}" in names]
        typed = [f'{name}: Float64[Tensor, "{shapes[name.removeprefix("grad_")]}"]' for name in arrays]
        typed += ['k: Int64[Tensor, "n"]'] if "k" in names else []
        self.random.shuffle(typed)
        yield from typed
        if "by" in names:
            yield f"by: {self.numbers['by'].replace(' = 1.5', '')}"

    def kernel(self, decorator: str, name: str, parameters: Sequence[str], body: Sequence[str]) -> str:
        indices = ['i: Index["n"]', *([] if self.is_flat else ['j: Index["q"]'])]
        head = ",\n    ".join([*indices, *parameters])
        return f"{decorator}\ndef {name}(\n    {head},\n):\n    " + "\n    ".join(body)


def generate(seed: int, number: int) -> str:
    """The source of a kernel `f` and its backwards."""
    return "from py2cu import atomic\n\n\n" + Writer(seed, number).source() + "\n"


# --- the verdict --------------------------------------------------------------------------------------------------


def faults(sources: Sequence[str]) -> Iterator[tuple[int, str]]:
    """The number of each kernel whose gradient is wrong or whose `vmap` differs from single calls, and the error."""
    kernels = [run_cells(source)["f"] for source in sources]
    with compiled_together([each for kernel in kernels for each in (kernel, *kernel.backwards)]):
        for place, kernel in enumerate(kernels):
            try:
                check(kernel, place)
            except (RuntimeError, AssertionError) as error:
                yield place, str(error)


@contextmanager
def compiled_together(kernels: Sequence[Kernel]) -> Iterator[None]:
    """Run the compiled code of `kernels` from one library."""
    pairs = zip(kernels, build([kernel.translation for kernel in kernels], Setting(Device.CPU)), strict=True)
    for kernel in kernels:
        kernel._prepare().instances.files = kernel.translation  # so that all calls are those of the operator
    runs = {kernel._prepare().instances.digest: next(iter(by_op.values())) for kernel, by_op in pairs}
    original = Instances.launcher

    def launcher(self: Instances, _: str, order: Order, gradients: object = None) -> Callable[..., Any]:
        assert not order.on_grid and gradients is None

        def op(*values: Any) -> Any:
            named = zip(order.names, values, strict=True)
            complete = allocate_outputs(self.signature, {name: value for name, value in named if value is not None})
            runs[self.digest](complete)
            return returned(tuple(complete[p.name] for p in self.signature.outputs if p.name not in order.names))

        return op

    Instances.launcher = launcher  # type: ignore[method-assign]
    try:
        yield
    finally:
        Instances.launcher = original  # type: ignore[method-assign]


def check(kernel: Kernel, seed: int) -> None:
    """Raise if a gradient is no derivative, or if `vmap` is not a call for each element."""
    signature, chosen = kernel.signature, random.Random(seed)
    written = {p.name for p in signature.outputs}
    given: dict[str, Any] = {"by": chosen.choice([0.5, -1.25])}
    if signature.parameter("by").default is not None or signature.parameter("by").may_be_none:
        given = chosen.choice([given, {}])
    generator = torch.Generator().manual_seed(seed)
    for p in signature.arrays:
        if p.name in written or (p.may_be_none and chosen.random() < 0.5):
            continue
        shape = [EXTENTS[str(dim.id)] for dim in signature.array_type(p.name).dims]  # type: ignore[union-attr]
        if p.name == "k":
            given["k"] = torch.randint(-2, 3, shape, generator=generator)
        else:
            given[p.name] = torch.randn(shape, generator=generator, dtype=torch.float64)
    of = {target.removeprefix("grad_") for b in kernel.backwards for target in (p.name for p in b.signature.written)}
    leaves = [name for name in given if name in of]
    leaves = chosen.sample(leaves, chosen.randint(1, len(leaves)))
    is_in_place = "x" in {p.name for p in signature.written}
    leaves += ["x"] if is_in_place and "x" not in leaves else []

    def call(*values: torch.Tensor) -> torch.Tensor:
        """All elements that the kernel writes."""
        arguments = {**given, **dict(zip(leaves, values, strict=True))}
        if is_in_place:
            arguments["x"] = arguments["x"] * 1  # which the kernel updates
        returned = kernel(**arguments)
        outputs = returned if isinstance(returned, tuple) else (arguments["x"] if is_in_place else returned,)
        return torch.cat([each.flatten() for each in outputs])

    values = tuple(given[name].requires_grad_() for name in leaves)
    torch.autograd.gradcheck(call, values)
    expected = torch.autograd.functional.jacobian(call, values)
    torch.testing.assert_close(torch.func.jacrev(call, tuple(range(len(leaves))))(*values), expected)
    batches = [torch.stack([value.detach() * scale for scale in (1.0, 0.5, -2.0)]) for value in values]
    one_by_one = torch.stack([call(*each) for each in zip(*batches, strict=True)])
    torch.testing.assert_close(torch.func.vmap(call)(*batches), one_by_one)
