"""A cache whose every file is damaged: calls compute what they did, and each entry is made anew."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

from py2cu.build import cache, toolchain

pytestmark = [
    pytest.mark.builds,
    pytest.mark.skipif(toolchain.find_cxx() is None, reason="needs a C++ compiler"),
]

KERNELS = """
from jaxtyping import Float32
from torch import Tensor
from py2cu import Index, kernel

@kernel
def doubled(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
    out[i] = 2.0 * x[i]

@kernel
def tripled(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
    out[i] = 3.0 * x[i]
"""

# Each round is a process that calls both kernels, and prints what it made. A library that was compiled once is copied
# the next time.
ROUNDS = """
import os, shutil, sys, torch
from pathlib import Path
import kernels
from py2cu import pipeline
from py2cu.build import cpu_entry
from test_damaged_cache import DAMAGES, entries

original, translate = cpu_entry.CpuInstance.compile, pipeline.lower_function

def compile_instance(instance, directory, source):
    print(end=" compiled")
    kept = Path("compiled", f"{instance.symbol}.so")
    if not kept.exists():
        kept.parent.mkdir(exist_ok=True)
        shutil.copy(original(instance, directory, source), kept)
    return Path(shutil.copy(kept, directory))

def lower_function(*arguments):
    print(end=" translated")
    return translate(*arguments)

cpu_entry.CpuInstance.compile, pipeline.lower_function = compile_instance, lower_function
for name, damage in DAMAGES.items():
    damage(entries())
    print(name, end=":", flush=True)
    if (child := os.fork()) == 0:
        x = torch.arange(5.0)
        assert torch.equal(kernels.doubled(x), 2 * x) and torch.equal(kernels.tripled(x), 3 * x)
        print(flush=True)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0 and len(entries()) == 4
"""


def cut(files: list[Path]) -> None:
    for path in files:
        os.truncate(path, path.stat().st_size * 2 // 3)


def empty(files: list[Path]) -> None:
    for path in files:
        os.truncate(path, 0)


def flip(files: list[Path]) -> None:
    for path in files:
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)


def swap(files: list[Path]) -> None:
    contents = [path.read_bytes() for path in files]
    for path, data in zip(files, contents[1:] + contents[:1], strict=True):
        path.write_bytes(data)


def keep(files: list[Path]) -> None:
    """Damage nothing."""


DAMAGES = {
    "filled": keep,
    "kept": keep,
    "cut": cut,
    "emptied": empty,
    "flipped": flip,
    "swapped": swap,
    "in the end": keep,
}


def entries() -> list[Path]:
    return sorted(path for path in Path("cache").glob("v2/*/*") if path.suffix in {".json", ".so"})


def test_each_entry_is_made_anew(tmp_path: Path) -> None:
    (tmp_path / "kernels.py").write_text(KERNELS)
    paths = os.pathsep.join([str(Path(cache.__file__).parents[2]), str(Path(__file__).parent), str(tmp_path)])
    environment = os.environ | {"PY2CU_CACHE_DIR": "cache", "PYTHONPATH": paths}
    command = [sys.executable, "-W", "error::UserWarning", "-c", ROUNDS]
    run = subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True, text=True)
    rounds = dict(line.split(":") for line in run.stdout.splitlines())
    for name, damage in DAMAGES.items():
        made = [] if damage is keep and name != "filled" else ["translated", "compiled"] * 2
        assert rounds[name].split() == made
