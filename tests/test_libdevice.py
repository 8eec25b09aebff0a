"""`cuda.libdevice`: it has every name that Numba has, and the same results in the simulator and compiled."""

from __future__ import annotations

import subprocess

import pytest

pytest.importorskip("torch")
np = pytest.importorskip("numpy")

from py2cu import builtins  # noqa: E402
from py2cu.builtins import intrinsics  # noqa: E402
from py2cu.simulator.values import special_functions  # noqa: E402
from tests.from_numba.libdevice import EDGES, SIGNATURES, Calls, tame  # noqa: E402
from tests.support.compilers import NVCC_STRICT, gxx, nvcc  # noqa: E402

PREFIX = "numba.cuda.libdevice."


def test_every_name_of_numba_is_read():
    libdevice = pytest.importorskip("numba.cuda.libdevice")
    names = (*builtins.names(), *builtins.formula_names())
    ours = {name.removeprefix(PREFIX) for name in names if name.startswith(PREFIX)}
    assert ours == {name for name in dir(libdevice) if not name.startswith("_")}


def signatures() -> dict[str, str]:
    """Those that Numba lists."""
    functions = pytest.importorskip("numba.cuda.libdevicefuncs").functions
    letters = {"float32": "f", "float64": "d", "int16": "h", "int32": "i", "int64": "l", "none": ""}
    found = {}
    for name, (result, arguments) in functions.items():
        made = letters[str(result)] + "".join(letters[str(each.ty)] for each in arguments if each.is_ptr)
        taken = "".join(letters[str(each.ty)] for each in arguments if not each.is_ptr)
        found[name.removeprefix("__nv_")] = f"{made}:{taken}"
    return found


def test_the_signatures_are_numbas():
    assert signatures().items() >= SIGNATURES.items()
    assert intrinsics.CALLS.keys() <= SIGNATURES.keys()


def differences(calls: Calls, folder, monkeypatch):
    """Where what is compiled for the CPU differs from the simulator."""
    gxx()
    kernels, found = calls.imported(folder), []
    for simulated in ("0", "1"):
        monkeypatch.setenv("NUMBA_ENABLE_CUDASIM", simulated)
        found.append(calls.results(kernels))
    return calls.differences(*found)


@pytest.mark.builds
@pytest.mark.slow
@pytest.mark.proof
def test_the_cpu_computes_what_the_simulator_does(tmp_path, monkeypatch):
    assert differences(EDGES, tmp_path, monkeypatch) == {}


@pytest.mark.builds
@pytest.mark.slow
@pytest.mark.proof
def test_so_it_does_of_all_other_functions(tmp_path, monkeypatch):
    others = {name: types for name, types in signatures().items() if name not in SIGNATURES}
    assert differences(tame(others), tmp_path, monkeypatch) == {}


@pytest.mark.builds
@pytest.mark.slow
@pytest.mark.proof
def test_nvcc_compiles_the_functions(tmp_path):
    compiler = nvcc()
    calls = tame(signatures())
    dtypes = {"f": "float32", "d": "float64", "l": "int64", "i": "int32", "h": "int16"}
    arrays = calls.arrays().values()
    types = (f"{dtypes[array.dtype.char]}[{', '.join([':'] * (array.ndim - 1) + ['::1'])}]" for array in arrays)
    kernel = calls.imported(tmp_path).calls.kernel(f"({', '.join(types)})")
    artifacts = kernel.translation.cuda
    for text in (artifacts.header, artifacts.kernel):
        (tmp_path / text.name).write_text(text.text, encoding="utf-8")
    path, made = (str(tmp_path / name) for name in (artifacts.kernel.name, "calls.o"))
    command = [compiler, *NVCC_STRICT, "-O1", "-Xptxas=-O0", "-arch=sm_75", "-c", path, "-o", made]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", ["erfinv", "erfcinv", "erfcx", "normcdf", "normcdfinv"])
def test_the_simulators_functions_are_accurate(name):
    """4 units in the last place of what mpmath computes."""
    mpmath = pytest.importorskip("mpmath")
    with mpmath.workdps(60):
        for text in POINTS[name]:
            x = float(text)
            exact = EXACTLY[name](mpmath, mpmath.mpf(x))
            got = getattr(special_functions, name)(x)
            assert abs(got - exact) <= 4 * np.spacing(abs(got)) + 1e-60, (x, got, exact)


_INSIDE = ("1e-300", "1e-20", "0.003", "0.1", "0.3333", "0.5", "0.7", "0.925", "0.9999999")
_ANYWHERE = ("-5.3", "-1.5", "-1e-17", "1e-9", "0.3", "1.1", "4.4", "9", "25.9", "26.1", "1e5")
POINTS = {
    "erfinv": (*_INSIDE, "5e-324", "-0.2", "-0.999"), "erfcinv": (*_INSIDE, "5e-324", "1.0001", "1.9"),
    "normcdfinv": (*_INSIDE, "1e-310"), "erfcx": (*_ANYWHERE, "-26", "1.7e308"), "normcdf": (*_ANYWHERE, "-37"),
}  # fmt: skip
EXACTLY = {
    "erfinv": lambda mpmath, x: mpmath.erfinv(x),
    "erfcinv": lambda mpmath, x: _root(mpmath, lambda z: mpmath.log(mpmath.erfc(z)) - mpmath.log(x), erfcinv_near(x)),
    "normcdfinv": lambda mpmath, x: _root(
        mpmath, lambda z: mpmath.log(mpmath.erfc(-z / mpmath.sqrt(2)) / 2) - mpmath.log(x), normcdfinv_near(x)
    ),
    "erfcx": lambda mpmath, x: mpmath.exp(x * x) * mpmath.erfc(x) if x < 1e6 else 1 / (x * mpmath.sqrt(mpmath.pi)),
    "normcdf": lambda mpmath, x: mpmath.erfc(-x / mpmath.sqrt(2)) / 2,
}


def _root(mpmath, function, near):
    """The root of an increasing or a decreasing function near a number that is right in half of its digits."""
    return mpmath.findroot(function, (near * (1 - 1e-7) - 1e-9, near * (1 + 1e-7) + 1e-9))


def erfcinv_near(x):
    return special_functions.erfcinv(float(x))


def normcdfinv_near(x):
    return special_functions.normcdfinv(float(x))
