"""Random kernels in Numba's spelling under Numba's simulator, py2cu's, and compiled.

    python -m tests.from_numba.fuzz --kernels 1000 --seed 1 [--compiled] [--jobs 2]

Integers have to be equal, floats within 4 units in the last place. Prints each kernel that differs; exits with 1 then.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import numpy as np

from tests.from_numba.random_kernels import kernel, module

ROOT: Final = Path(__file__).parents[2]
BATCH: Final = 25
ULPS: Final = 4


def results(how: str, path: Path, place: Path, *names: str) -> dict[str, Any]:
    """What the kernels of a module wrote, by kernel and array; `names` are the kernels, all if there is none.

    Compiled code runs on the CPU: a GPU's fuses multiplications and additions.
    """
    file = place / f"{how}.npz"
    command = [sys.executable, "-m", "tests.from_numba.run", how, str(path), str(file), *names]
    env = os.environ | {"CUDA_VISIBLE_DEVICES": ""}
    run = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    if run.returncode:
        raise RuntimeError(run.stderr)
    with np.load(file) as saved:
        return dict(saved)


def differences(ours: dict[str, Any], theirs: dict[str, Any]) -> dict[str, object]:
    """What differs, and every kernel that one of them refuses."""
    found: dict[str, object] = {
        name: str(text) for each in (ours, theirs) for name, text in each.items() if name.endswith(":error")
    }
    for name, array in ours.items():
        if name in found or name not in theirs:
            continue
        expected = theirs[name]
        is_close = np.asarray(array == expected)
        if expected.dtype.kind == "f":
            with np.errstate(invalid="ignore"):
                is_close |= np.abs(array - expected) <= ULPS * np.spacing(np.abs(expected))
            is_close |= np.isnan(array) & np.isnan(expected)
        if not is_close.all():
            found[name] = (array, expected)
    return found


def judge(seed: int, numbers: range, compiled: bool) -> dict[str, object]:
    """The differences of one batch."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        path = place / "random_kernels.py"
        path.write_text(module(seed, numbers), encoding="utf-8")
        theirs, simulated = results("numba", path, place), results("simulated", path, place)
        found = differences(simulated, theirs)
        return found | (differences(results("compiled", path, place), theirs) if compiled else {})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernels", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--compiled", action="store_true")
    options = parser.parse_args()
    batches = [range(at, min(at + BATCH, options.kernels)) for at in range(0, options.kernels, BATCH)]
    with ThreadPoolExecutor(options.jobs) as pool:
        found = [*pool.map(lambda numbers: judge(options.seed, numbers, options.compiled), batches)]
    differing = {name: what for batch in found for name, what in batch.items()}
    for name, what in differing.items():
        print(f"{name}: {what}\n{kernel(options.seed, int(name.partition(':')[0][1:]))}")
    print(f"{options.kernels} kernels of seed {options.seed}: {len(differing)} differences")
    sys.exit(bool(differing))


if __name__ == "__main__":
    main()
