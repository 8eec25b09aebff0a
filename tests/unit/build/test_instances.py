"""`py2cu build` compiles the instances that calls launch."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("torch")

from py2cu.build.instances import instances
from py2cu.pipeline import lower_file
from py2cu.source import SourceFile
from py2cu.translation import CallTranslation, TargetName

EXAMPLES = Path(__file__).parents[3] / "examples"


def translated(file: SourceFile) -> CallTranslation:
    return lower_file(file).for_calls(TargetName.CUDA)


def test_a_pack_a_scattered_and_a_single_element_for_each_thread() -> None:
    text = """
from jaxtyping import UInt8
from torch import Tensor
from py2cu import Index, kernel

@kernel
def copy(i: Index["n"], x: UInt8[Tensor, "n"], out: UInt8[Tensor, "n"]):
    out[i] = x[i]

@kernel(coarsen=1)
def single(i: Index["n"], x: UInt8[Tensor, "n"], out: UInt8[Tensor, "n"]):
    out[i] = x[i]
"""
    translation = translated(SourceFile("copies.py", text))
    found = [(program.symbol, template) for program, template in instances(translation, TargetName.CUDA)]
    assert found[:3] == [("copy", "<16, 1>"), ("copy", "<1, 4>"), ("copy", "<1, 1>")]
    assert {template for symbol, template in found[3:]} == {"<int>", "<int64_t>"}


@pytest.mark.parametrize("name", ["grayscale", "vectors", "rows", "box_blur"])
def test_instances_have_the_arguments_of_the_template(name: str) -> None:
    translation = translated(SourceFile.read(EXAMPLES / f"{name}.py"))
    bounds = r"(?:void )?(?:__launch_bounds__\([^)]*\) )?(?:void )?"
    heads = re.compile(rf"(?:template <([^>]*)>.*\n)?__global__ {bounds}(\w+)_kernel\(")
    counts: dict[str, int] = {}
    for parameters, symbol in heads.findall(translation.text(TargetName.CUDA).text.text):
        counts[symbol] = len(parameters.split(",")) if parameters else 0
    for program, template in instances(translation, TargetName.CUDA):
        arguments = template.strip("<>").split(",") if template else []
        assert len(arguments) == counts[program.symbol], program.symbol
