"""Run the kernels of a module by one implementation, and save what they write.

    python -m tests.from_numba.run HOW MODULE FILE [KERNEL …]

HOW is `numba`, Numba's own simulator; `cuda`, Numba's compiler on a GPU; `compiled`, py2cu on a GPU or, without one, on
the CPU; or `simulated`, py2cu's simulator. MODULE is the path of a file such as `kernels.py`.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import sys
import traceback
import warnings
from types import ModuleType


def load(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location("kernels", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["kernels"] = module
    spec.loader.exec_module(module)
    return module


def main() -> None:
    how, path, output, *chosen = sys.argv[1:]
    os.environ["NUMBA_ENABLE_CUDASIM"] = "0" if how in ("compiled", "cuda") else "1"
    import numpy as np

    from py2cu.numba.stand_in import imported_as_numba

    warnings.simplefilter("ignore")  # NumPy's, of what overflows or is divided by zero
    with contextlib.nullcontext() if how in ("numba", "cuda") else imported_as_numba():
        kernels = load(path)
    results = {}
    for name, (kernel, launch, arguments) in kernels.CASES.items():
        if (chosen and name not in chosen) or (how == "numba" and name in kernels.OWN):
            continue
        values = [make() for make in arguments]
        try:
            kernel[launch](*values)
        except Exception:
            results[f"{name}:error"] = np.array(traceback.format_exc()[-1500:])
            continue
        arrays = [value for value in values if isinstance(value, np.ndarray)]
        results.update({f"{name}:{number}": array for number, array in enumerate(arrays)})
    np.savez(output, **results)


if __name__ == "__main__":
    main()
