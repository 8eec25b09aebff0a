"""Random host functions: torch calls of the table on tensors of any shape, integers, branches and loops."""

from __future__ import annotations

import random
from collections.abc import Iterator

HEAD = """\
import torch
import torch.nn.functional as F
from torch import Tensor
from py2cu import host

STEP = 2

"""
UNARY = (
    "{t}.sigmoid()", "torch.tanh({t})", "torch.relu({t})", "torch.exp({t} * 0.1)", "-{t}", "{t}.t()", "{t} + {s}",
    "{s} - {t}", "{t} * {i}", "{t} / 3", "F.elu({t}, alpha={s})", "{t}.transpose(0, 1)", "{t}.contiguous()",
    "{t}.reshape(-1)", "{t}.flatten()", "{t}.unsqueeze({axis})", "{t}.squeeze()", "{t}.squeeze({axis})",
    "torch.softmax({t}, dim={axis})", "{t}.sum({axis}, keepdim=True)", "{t}.mean(({axis},))", "{t}.sum()", "{t}[{i}]",
    "{t}[1:]", "{t}[:, ::STEP]", "{t}.narrow({axis}, 0, {i})", "{t}.select({axis}, {i})", "torch.zeros_like({t}) + 1",
    "{t}.new_full(({i}, 2), {s})", "{t}.to(torch.float64)", "torch.full(({i}, {i}), {s})", "{t}.permute(1, 0)",
    "{t}.view({i}, -1)", "{t}.expand(2, -1, -1)", "torch.ones({i}, 2, dtype={t}.dtype)", "torch.neg({t})",
    "{t}.sqrt()", "{t}.chunk(2, dim={axis})[0]",
)  # fmt: skip
BINARY = (
    "{t} + {u}", "{t} - {u}", "{t} * {u}", "torch.add({t}, {u}, alpha=2)", "{t} @ {u}", "torch.mm({t}, {u}.t())",
    "torch.cat(({t}, {u}), dim={axis})", "torch.stack([{t}, {u}])", "torch.where({t} > {u}, {t}, {s})",
    "{t}.matmul({u})", "torch.where({t} <= {s}, {u}, {t})", "torch.addmm({t}, {t}, {u}.t())", "({t} == {u}) * {t}",
    "{t}.le({u}).to(torch.float32)",
)  # fmt: skip
INTEGERS = (
    "{t}.size({axis})", "{t}.numel()", "{t}.dim()", "{t}.shape[-1] // 2", "n % 3", "({i} + 3) // STEP", "min({i}, 4)",
    "n - {i}", "len({t}.shape)", "max(n, 1) * 2", "{i} // n", "{i} if {i} > 1 else 2",
)  # fmt: skip


def function(name: str, chance: random.Random) -> str:
    """The text of one host function."""
    tensors, integers, lines = ["x", "y"], ["1", "n", "0"], []

    def filled(form: str) -> str:
        return form.format(
            t=chance.choice(tensors), u=chance.choice(tensors), i=chance.choice(integers), axis=chance.choice("01"),
            s=chance.choice(("0.5", "s", "-1.25", "2")),
        )  # fmt: skip

    def statements(indent: str, count: int) -> Iterator[str]:
        for _ in range(count):
            kind = chance.random()
            if kind < 0.25:
                value = filled(chance.choice(INTEGERS))
                integers.append(f"i{len(integers)}")
                yield f"{indent}{integers[-1]} = {value}"
            elif kind < 0.7:
                value = filled(chance.choice(UNARY))
                tensors.append(f"t{len(tensors)}")
                yield f"{indent}{tensors[-1]} = {value}"
            else:
                value = filled(chance.choice(BINARY))
                tensors.append(f"t{len(tensors)}")
                yield f"{indent}{tensors[-1]} = {value}"

    lines += statements("    ", chance.randint(2, 5))
    known = chance.choice(tensors)
    match chance.randrange(4):
        case 0:
            lines += [f"    if {filled('{i} > {i}')}:", f"        {known} = {known} * 2", "    else:"]
            lines += [f"        {known} = {known} + {chance.choice(integers)}"]
        case 1:
            lines += [f"    for k in range({filled('{i}')}):", f"        {known} = {known} + k"]
        case 2:
            lines += [f"    if {filled('{i} < {i}')}:", '        raise ValueError("refused")']
        case _:
            lines += [f'    assert {filled("{i} >= 0")}, "negative"']
    lines += statements("    ", chance.randint(0, 2))
    results = ", ".join(chance.sample(tensors, chance.randint(1, min(3, len(tensors)))))
    return "\n".join(
        ["@host", f"def {name}(x: Tensor, y: Tensor, n: int, s: float):", *lines, f"    return {results}", ""]
    )


def functions(count: int, seed: int) -> str:
    """The text of a file with this many host functions, `f0` and so on."""
    chance = random.Random(seed)
    return HEAD + "\n\n".join(function(f"f{place}", chance) for place in range(count))
