"""Run the kernels of `kernels.py` by one implementation, and save what they write.

    python -m tests.from_numba.run HOW FILE [KERNEL …]

HOW is `numba`, Numba's own simulator; `compiled`, py2cu's target for the arrays' device; or `simulated`, py2cu's
simulator.
"""

from __future__ import annotations

import os
import sys
import traceback


def main() -> None:
    how, place, *chosen = sys.argv[1:]
    os.environ["NUMBA_ENABLE_CUDASIM"] = "0" if how == "compiled" else "1"
    import numpy as np

    if how == "numba":
        from tests.from_numba import kernels
    else:
        from py2cu.numba.stand_in import imported_as_numba

        with imported_as_numba():
            from tests.from_numba import kernels
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
        results.update({f"{name}:{place}": array for place, array in enumerate(arrays)})
    np.savez(place, **results)


if __name__ == "__main__":
    main()
