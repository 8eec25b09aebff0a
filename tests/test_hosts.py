"""Host functions: each row of the table, the control flow around it, kernels, errors; in C++ as in Python."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from py2cu import Host  # noqa: E402
from py2cu.hosts.model import table  # noqa: E402
from py2cu.pipeline import translate_file  # noqa: E402
from py2cu.source import SourceFile  # noqa: E402
from tests.support.compilers import GXX_STRICT, gxx, torch_headers  # noqa: E402
from tests.support.hosts import Hosts, differs  # noqa: E402
from tests.support.modules import import_file  # noqa: E402
from tests.support.random_hosts import functions  # noqa: E402
from tests.support.samples import proofs  # noqa: E402

pytestmark = pytest.mark.builds

HEAD = """\
import torch
import torch.nn.functional as F
from torch import Tensor
from py2cu import host

"""
X, Y = torch.randn(4, 6), torch.randn(4, 6)
ARGUMENTS: dict[str, Any] = {"x": X, "y": Y, "n": 3, "s": 0.75, "c": X > 0}
OF_TYPE = {
    "Tensor": "y", "Tensor[]": "[x, y]", "Scalar": "s", "bool": "True", "int[1]": "1", "ScalarType": "torch.float64",
    "int": "1",
}  # fmt: skip
OF_NAME = {
    "size": "(6, 4)", "shape": "(6, 4)", "dims": "(1, 0)", "condition": "c", "chunks": "2", "length": "2", "start": "1",
    "mat1": "x", "mat2": "y.t()", "fill_value": "s", "dim0": "0", "dim1": "1", "end_dim": "1", "start_dim": "0",
    "dim": "0",
}  # fmt: skip


def calls(row: table.Operator) -> list[str]:
    """The forms in which Python may call a row, with optional arguments and without."""
    first = {"addmm": "torch.zeros(4, 4)", "t": "x", "squeeze": "x.unsqueeze(0)", "expand": "x.select(0, 0)"}
    sizes = {"expand": "(4, 6)"}
    owner = first.get(row.name, "x")
    values = []
    for argument in row.arguments:
        if argument.name in ("dtype", "device") and argument.default is not None:
            continue
        value = OF_NAME.get(argument.name, OF_TYPE.get(argument.type, "y"))
        value = sizes.get(row.name, value) if argument.type == "int[]" else value
        value = owner if argument.name == "self" and argument.type == "Tensor" else value
        value = "y.t()" if row.name in ("mm", "matmul") and argument.name in ("other", "mat2") else value
        values.append((argument, value))
    found = []
    for with_optional in (False, True):
        kept = [(a, v) for a, v in values if with_optional or a.default is None]
        texts = [v if not a.by_keyword else f"{a.name}={v}" for a, v in kept]
        if any(a.name == "dtype" and a.default is not None for a in row.arguments) and with_optional:
            texts.append("dtype=torch.float64")
        has_owner = kept and kept[0][0].name == "self"
        found += [f"torch.{name}({', '.join(texts)})" for name in row.functions]
        found += [f"{texts[0]}.{row.method}({', '.join(texts[1:])})"] if row.method and has_owner else []
    if row.sign:
        found += [f"{owner} {row.sign} {values[1][1]}", f"{values[1][1]} {row.sign} {owner}"]
    return list(dict.fromkeys(found))


FORMS = [call for row in table.OPERATORS for call in calls(row)]


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Hosts:
    head = "def row{}(x: Tensor, y: Tensor, c: Tensor, n: int, s: float):\n"
    texts = []
    for place, form in enumerate(FORMS):
        result = f"    parts = {form}\n    return [parts[0], parts[1]]\n" if "chunk" in form else f"    return {form}\n"
        texts.append("@host\n" + head.format(place) + result)
    return Hosts(HEAD + "\n".join(texts), tmp_path_factory.mktemp("rows"))


def test_each_row_does_what_torch_does(rows: Hosts) -> None:
    assert len(FORMS) > 150
    wrong = []
    for place, form in enumerate(FORMS):
        theirs, ours = rows.outcomes(f"row{place}", ARGUMENTS)
        is_new = form.startswith(("torch.empty", "x.new_empty"))
        if is_new and isinstance(ours, list):
            theirs, ours = ([torch.zeros_like(t) for t in each] for each in (theirs, ours))
        assert not isinstance(theirs, Exception), (form, theirs)
        if what := differs(theirs, ours):
            wrong.append(f"{form}: {what}")
    assert not wrong, "\n".join(wrong)


FLOW = (
    HEAD
    + '''
ROWS = 4
HALF = 0.5


@host
def branches(x: Tensor, n: int = 2, *, twice: bool = False) -> Tensor:
    """Adds, by branches."""
    if n > 3:
        y = x + n
        shift = 1
    elif n < 0:
        y = x - n
        shift = -n
    else:
        y = x
        shift = 0
    # doubled at last
    z = y * 2 if twice else y
    return z + shift


@host
def rounds(x: Tensor, n: int) -> Tensor:
    total = 0
    for i in range(n):
        for k in range(n, i, -2):
            x = x + k
            total += i * k
    for i in range(1, n, 2):
        total -= i
    return x * total


@host
def integers(x: Tensor, a: int, b: int) -> Tensor:
    q, r = a // b, a % b
    low, high = min(a, b), max(a, b)
    a, b = b, a
    half = a / 4
    return torch.full((5,), q) + torch.full((1,), r * 10 + low - high) + half + float(b)


@host
def shapes(x: Tensor) -> Tensor:
    h, w = x.shape
    shape = x.shape
    last = shape[-1]
    flat = x.reshape(-1)
    sizes = (w, h)
    rows = (h + ROWS - 1) // ROWS
    return flat.view(sizes)[1:, : last - 1].sum(0, keepdim=True) + len(sizes) + rows + x.numel() + x.dim() * HALF


@host
def parts(x: Tensor):
    a, b, c = x.chunk(3, dim=1)
    first, *_ = a, b
    return a, b, c


@host
def lists(xs: list[Tensor], at: int) -> Tensor:
    picked = xs[at]
    return torch.stack([picked, xs[0]])


@host
def asserts(x: Tensor, n: int) -> Tensor:
    assert x.dim() == 2, "a matrix"
    if n < 0:
        raise ValueError("n is negative")
    if n == 7:
        raise NotImplementedError(f"n is {n}")
    if n > 100:
        raise IndexError("too far")
    return x


@host
def recursive(x: Tensor, n: int) -> Tensor:
    if n <= 0:
        return x
    return recursive(x * 2, n - 1)


@host
def pair(x: Tensor):
    return x, x * 2


@host
def shrinking(x: Tensor, n: int) -> Tensor:
    if n < 0:
        raise ValueError(f'n is "{n}"')
    parts = [x, x * 2]
    for _ in range(n):
        x = x + parts[1]
        parts = [x]
    return pair(x)[1]


@host
def reflected(x: Tensor, s: float) -> Tensor:
    return torch.stack([(2.5 - x) * 1.0, (s - x) * 1.0, 1 / x, s / x])


@host
def choices(x: Tensor, c: bool) -> Tensor:
    big = (2000000000 if c else 1) * 4
    return torch.full((1,), big)


@host
def compared(x: Tensor, c: bool, unused: int) -> Tensor:
    h, w = 4, 6
    assert x.shape != (h, 3) and (h, w) == x.shape, "a \x07?? \x1b"
    if x.shape == (4, 6):  # as it is
        y = x
    else:
        # turned
        y = x.t()
    if c == 1:
        pass
        # nothing
    elif c:
        y = y + 1
    return y.sum(dtype=None)


@host
def temporaries(x: Tensor) -> Tensor:
    for i in range(x.size(0)):
        x = x + i
    a, b = x.chunk(2)
    d, e = x.transpose(0, 1).shape
    stop, tensor, parts = 5, x, a
    return parts + b + tensor[:2] * stop + d - e


@host
def copied(xs: list[Tensor], c: bool):
    ys = xs
    if c:
        ys = [xs[0]]
    return ys


@host
def returned(xs: list[Tensor]):
    return xs


@host
def exp(m: Tensor, op: int, exp: float = 1.0) -> Tensor:
    """Named as a function of C."""
    return torch.exp(m * op * exp)


@host
def named(size_t: Tensor, TORCH_CHECK: int) -> Tensor:
    return exp(size_t, TORCH_CHECK)


@host
def through(x: Tensor, n: int) -> Tensor:
    return recursive(x, n=n) + branches(x, twice=True)
'''.replace("    first, *_ = a, b\n", "")
)


@pytest.fixture(scope="module")
def flow(tmp_path_factory: pytest.TempPathFactory) -> Hosts:
    return Hosts(FLOW, tmp_path_factory.mktemp("flow"))


CASES = [
    *(("branches", {"x": X, "n": n, "twice": t}) for n in (-2, 0, 3, 9) for t in (False, True)),
    *(("rounds", {"x": X, "n": n}) for n in (-1, 0, 1, 4, 7)),
    *(("integers", {"x": X, "a": a, "b": b}) for a in (-7, 0, 7, 2**40) for b in (-3, 2, 0)),
    *(("shapes", {"x": x}) for x in (X, X[:1], torch.zeros(3), torch.zeros(2, 3, 4))),
    *(("parts", {"x": x}) for x in (X, X[:, :2], X[:, :3])),
    *(("lists", {"xs": xs, "at": at}) for xs in ([X, Y], [X]) for at in (0, 1, -1, -2)),
    *(("asserts", {"x": x, "n": n}) for x in (X, X[0]) for n in (-1, 0, 7, 101)),
    *(("recursive", {"x": X, "n": n}) for n in (0, 5)),
    ("through", {"x": X, "n": 3}),
    *(("reflected", {"x": x, "s": 0.75}) for x in (Y, torch.tensor([3, 7]), torch.tensor([9], dtype=torch.uint8))),
    *(("choices", {"x": X, "c": c}) for c in (False, True)),
    *(("compared", {"x": x, "c": c, "unused": 1}) for x in (X, X.t()) for c in (False, True)),
    ("temporaries", {"x": X}),
    *(("copied", {"xs": [X, Y], "c": c}) for c in (False, True)),
    ("returned", {"xs": [X, Y]}),
    ("exp", {"m": X, "op": 2}),
    ("named", {"size_t": X, "TORCH_CHECK": 2}),
    *(("shrinking", {"x": X, "n": n}) for n in (-1, 0, 1, 2)),
]  # fmt: skip


@pytest.mark.parametrize("place", range(len(CASES)), ids=[f"{name}-{at}" for at, (name, _) in enumerate(CASES)])
def test_control_flow_and_numbers(flow: Hosts, place: int) -> None:
    name, arguments = CASES[place]
    theirs, ours = flow.outcomes(name, arguments)
    assert not differs(theirs, ours)
    if isinstance(theirs, Exception) and name == "asserts":
        assert str(theirs) == str(ours)


def test_integers_beyond_64_bits_are_an_error(flow: Hosts) -> None:
    with pytest.raises(RuntimeError, match="an integer is beyond 64 bits"):
        flow.compiled["integers"](X, -(2**63), 2**63 - 1)


@pytest.mark.parametrize("hosts", proofs(["flow", "rows"]))
def test_the_text_compiles_without_a_warning(hosts: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    source = tmp_path / f"{hosts}.cpp"
    source.write_text(request.getfixturevalue(hosts).text, encoding="utf-8")
    command = [gxx(), *GXX_STRICT, *torch_headers(), "-DTORCH_EXTENSION_NAME=t", "-fsyntax-only", str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


# --- with kernels, in a program ---------------------------------------------------------------------------------------

LAUNCHERS = """
import torch
from jaxtyping import BFloat16, Float, Float32, Int, UInt8
from torch import Tensor
from py2cu import Index, blockDim, blockIdx, host, kernel, threadIdx

THREADS = 256


@kernel
def grey(x: UInt8[Tensor, "3 n"], out: UInt8[Tensor, "n"]):
    i = blockIdx.x * blockDim.x + threadIdx.x
    if i < len(out):
        out[i] = 0.2989 * x[0, i] + 0.5870 * x[1, i] + 0.1140 * x[2, i]


@kernel
def scaled(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"], by: float = 2.0):
    out[i] = x[i] * by


@kernel
def increased(i: Index["n"], x: Float32[Tensor, "n"]):
    x[i] += 1


@host
def rgb2grey(x: UInt8[Tensor, "3 h w"]) -> Tensor:
    c, h, w = x.shape
    out = torch.empty(h * w, dtype=x.dtype, device=x.device)
    grey[(h * w + THREADS - 1) // THREADS, THREADS](x.flatten(1), out)
    return out.view(h, w)


@host
def scales(x: Float32[Tensor, "n"], by: float = 0.5):
    y = scaled(x)
    z = scaled(x, by=by)
    out = torch.empty_like(x)
    scaled(x, out, by)
    return y, z, out


@host
def in_place(x: Float32[Tensor, "n"], n: int):
    for _ in range(n):
        increased(x)
    increased(x[1:])


@kernel
def sigmoid(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
    out[i] = x[i] * 3


@host
def softmax(x: Float32[Tensor, "n"], n: int = 1) -> Tensor:
    sigmoid_out = -(-x)
    y = torch.empty_like(x)
    sigmoid(sigmoid_out, out=y)
    if n > 0:
        return softmax(y, n - 2) + torch.sigmoid(x)
    return torch.softmax(sigmoid(y), 0) + -n


@host
def sums(x: Float[Tensor, "n"], k: Int[Tensor, "n"], y: Float[Tensor, "n"]) -> Tensor:
    return (x + y) * k


@host
def added(x: Float32[Tensor, "n"] | BFloat16[Tensor, "n"], y: BFloat16[Tensor, "n"] | UInt8[Tensor, "n"]) -> Tensor:
    return x + y
"""


@pytest.fixture(scope="module")
def launchers(tmp_path_factory: pytest.TempPathFactory) -> Any:
    file = tmp_path_factory.mktemp("launchers") / "launchers_of_hosts.py"
    file.write_text(LAUNCHERS, encoding="utf-8")
    return import_file(file)


@pytest.mark.parametrize("name", ["rgb2grey", "scales", "in_place", "softmax", "sums", "added"])
def test_kernels_are_called_by_their_operators(launchers: Any, name: str) -> None:
    host: Host = getattr(launchers, name)
    report = host.check()
    assert report.ok, str(report)


def test_a_parameter_that_a_kernel_writes_is_told_of_in_the_schema(launchers: Any) -> None:
    assert str(launchers.in_place.op._schema).endswith("in_place(Tensor(a!) x, int n) -> ()")
    assert launchers.rgb2grey.op._schema.is_mutable is False


def test_arguments_are_checked_before_either_way(launchers: Any) -> None:
    for call in (launchers.scales, launchers.scales.op):
        with pytest.raises(RuntimeError, match="scales: `x` must be float32, got float64"):
            call(torch.zeros(3, dtype=torch.float64), 0.5)
    with pytest.raises(TypeError, match="`by` takes a float, got Tensor"):
        launchers.scales(torch.zeros(3), torch.zeros(3))
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'x'"):
        launchers.scales()


def test_each_annotation_has_its_own_dtype(launchers: Any) -> None:
    """An annotation that leaves the dtype open means one dtype, and another annotation another one."""
    x, k = torch.rand(3), torch.arange(3)
    for sums, added in ((launchers.sums, launchers.added), (launchers.sums.op, launchers.added.op)):
        assert sums(x, k, x).tolist() == (2 * x * k).tolist()
        assert added(x, torch.ones(3, dtype=torch.uint8)).dtype is torch.float32
        with pytest.raises(RuntimeError, match="sums: `y` must be float32, got float64"):
            sums(x, k, x.double())
        with pytest.raises(RuntimeError, match="added: `y` must be one of bfloat16, uint8, got float32"):
            added(x, x)


def test_an_edited_kernel_compiles_no_host_function(launchers: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.ones(4)
    assert launchers.scales(x)[0].tolist() == [2.0] * 4
    operator = launchers.scales.op
    file = Path(launchers.__file__)
    monkeypatch.setattr(launchers, "scaled", import_text(file, LAUNCHERS.replace("x[i] * by", "x[i] * by + 1")).scaled)
    assert launchers.scales.op is operator
    assert operator(x)[0].tolist() == [3.0] * 4


def import_text(beside: Path, text: str) -> Any:
    file = beside.with_name("edited_launchers.py")
    file.write_text(text, encoding="utf-8")
    return import_file(file)


def test_a_file_has_a_text_of_host_functions() -> None:
    translation = translate_file(SourceFile("launchers.py", LAUNCHERS))
    assert translation.host is not None
    assert translation.host.name == "launchers_host.cpp"
    assert 'KERNEL("grey"), "grid"' in translation.host.text
    assert "host" not in translation.cuda.kernel.text


# --- random functions -------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("count", [40, pytest.param(200, marks=pytest.mark.proof)])
def test_random_functions_agree_with_python(count: int, tmp_path: Path) -> None:
    hosts = Hosts(functions(count, seed=count), tmp_path)
    generator = torch.Generator().manual_seed(1)
    shapes = ((3, 3), (3, 3)), ((4, 6), (4, 6)), ((2, 5), (5, 2)), ((4,), (4,)), ((1, 3), (2, 3)), ((0, 2), (0, 2))
    wrong, agreed, raised = [], 0, 0
    for name in hosts.python:
        for place, pair in enumerate(shapes):
            x, y = (torch.randn(shape, generator=generator) for shape in pair)
            arguments = {"x": x, "y": y, "n": (2, 1, 5, 0, -3, 3)[place], "s": 0.25}
            theirs, ours = hosts.outcomes(name, arguments)
            raised += isinstance(theirs, Exception)
            agreed += not isinstance(theirs, Exception)
            if what := differs(theirs, ours):
                wrong.append(f"{name}{pair}: {what}")
    assert not wrong, "\n".join(wrong)
    assert agreed > count
    assert raised > count
