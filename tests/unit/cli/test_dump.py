"""The IR that `py2cu translate --dump-ir` prints: of which kernels, after which passes, and of what was refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from py2cu.cli.app import app

pytestmark = pytest.mark.usefixtures("one_element_a_thread")

HEAD = """\
from jaxtyping import Float, Float32
from torch import Tensor
from py2cu import Index, blockIdx, kernel, syncthreads, threadIdx

"""
TWICE = """
@kernel
def twice(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
    out[i] = 2 * x[i]
"""
NEGATE = TWICE.replace("twice", "negate").replace("2 * x[i]", "-x[i]")
WRONG = TWICE.replace("twice", "wrong").replace("2 * x[i]", "2 * x + y")
GENERIC = """
def half(v):
    return v / 2

@kernel
def halved(i: Index["n"], x: Float[Tensor, "n"], out: Float[Tensor, "n"]):
    out[i] = half(x[i])
"""
SYNCING = """
@kernel(block=64)
def rotated(x: Float32[Tensor, "b 64"]):
    v = x[blockIdx.x, threadIdx.x]
    syncthreads()
    x[blockIdx.x, 63 - threadIdx.x] = v
"""
ENDLESS = TWICE.replace("twice", "endless").replace("2 * x[i]", "1\n    while x[0] < 1: pass")


def run(*args: str | Path) -> Result:
    return CliRunner().invoke(app, ["translate", *map(str, args)])


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Writes a file of kernels into the current directory, and gives its name."""
    monkeypatch.chdir(tmp_path)

    def write(name: str, *kernels: str) -> str:
        Path(name).write_text(HEAD + "\n".join(kernels))
        return name

    return write


def heads(text: str) -> list[str]:
    return re.findall(r"^# --- (.*) ---$", text, re.MULTILINE)


def test_the_ir_is_printed_in_place_of_the_texts(write) -> None:
    result = run(write("k.py", TWICE, NEGATE), "--dump-ir")
    assert (result.exit_code, result.stderr) == (0, "")
    assert heads(result.stdout) == ["twice of k.py, after uniquify_symbols", "negate of k.py, after uniquify_symbols"]
    assert "  out[i] = (2.0:float32 * x[i]:float32):float32" in result.stdout
    assert "__global__" not in result.stdout


def test_the_value_of_dump_ir_is_taken_with_an_equals_sign_alone(write) -> None:
    name = write("k.py", TWICE)
    behind = run(name, "--dump-ir")
    for arguments in (
        ["--dump-ir", name],
        ["--dump-ir", "--", name],
        ["--dump-ir=", name],
        ["--dump-ir=uniquify_symbols", name],
    ):
        assert run(*arguments).stdout == behind.stdout
    Path("infer_types").write_text(Path(name).read_text())
    assert heads(run("--dump-ir", "infer_types").stdout) == ["twice of infer_types, after uniquify_symbols"]
    result = run("--", "--dump-ir")
    assert result.exit_code == 2 and "--dump-ir: error[P100]: cannot read the file" in result.stderr


def test_the_ir_after_a_pass_of_one_kernel(write) -> None:
    result = run(write("k.py", TWICE, NEGATE), "--kernel", "negate", "--dump-ir=read_kernel")
    assert heads(result.stdout) == ["negate of k.py, after read_kernel"]
    assert "  out[i] = -x[i]\n" in result.stdout and "guard" not in result.stdout


def test_what_each_pass_changed(write) -> None:
    result = run(write("k.py", TWICE), "--dump-ir=diff")
    assert heads(result.stdout) == ["twice of k.py"]
    changed = re.findall(r"^\+\+\+ after (.*)$", result.stdout, re.MULTILINE)
    typed = ["infer_types", "add_guards", "infer_roles", "find_independent_dims", "find_in_place_pairs"]
    assert changed == [*typed, "choose_integer_widths", "rename"]
    assert "-  out[i] = 2 * x[i]\n+  out[i] = (2.0:float32 * x[i]:float32):float32\n" in result.stdout


def test_the_ir_of_instances_and_of_several_files(write) -> None:
    names = [write("g.py", GENERIC), write("k.py", TWICE)]
    result = run(*names, "--dump-ir=infer_types")
    kinds = ["float32", "float64", "float16", "bfloat16"]
    assert sorted(heads(result.stdout)) == sorted(
        [*(f"halved [T={kind}] of g.py, after infer_types" for kind in kinds), "twice of k.py, after infer_types"]
    )
    assert result.stdout.count("function half[") == 4


def test_passes_for_the_cpu_alone(write) -> None:
    name = write("k.py", SYNCING)
    split = run(name, "--target", "cpu", "--dump-ir=split_at_barriers")
    assert heads(split.stdout) == ["rotated of k.py, after split_at_barriers"]
    assert "each thread:" in split.stdout and "syncthreads" not in split.stdout
    last = run(name, "--target", "cpu", "--dump-ir")
    assert "called rotated in C++" in last.stdout and "each thread:" in last.stdout
    assert "syncthreads()" in run(name, "--dump-ir").stdout
    refused = run(name, "--dump-ir=split_at_barriers")
    assert refused.exit_code == 2 and "runs for the CPU alone\n  hint: add `--target cpu`" in refused.stderr
    other = run(write("o.py", TWICE), "--target", "cpu", "--dump-ir=split_at_barriers")
    assert heads(other.stdout) == ["twice of o.py, after insert_yields; split_at_barriers did not run"]


def test_of_a_refused_kernel_there_is_the_ir_before_its_error(write) -> None:
    name = write("k.py", TWICE, ENDLESS, WRONG)
    result = run(name, "--dump-ir")
    assert result.exit_code == 2
    assert heads(result.stdout) == [
        "twice of k.py, after flatten_indices",
        "endless of k.py, after check_order; refused by check_endless_loops",
        "wrong of k.py; refused by read_kernel: there is no IR before its error",
    ]
    assert "error[P503]" in result.stderr and "error[P201]" in result.stderr and "[P" not in result.stdout
    early = run(name, "--kernel", "endless", "--dump-ir=infer_types").stdout
    assert heads(early) == ["endless of k.py, after infer_types; refused by check_endless_loops"]
    assert "while x[0]:float32 < 1.0:float32:" in run(name, "--dump-ir=diff").stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["--dump-ir=infer_type"],
            "there is no pass `infer_type`\n  hint: did you mean `infer_types`?\n  passes: read_k",
        ),
        (
            ["--dump-ir=zzz"],
            "there is no pass `zzz`\n  hint: write one of these names\n  passes: read_kernel, fix_row_lengths, ch",
        ),
        (["--dump-ir", "-o", "csrc"], "`--dump-ir` prints the IR and writes no texts\n  hint: leave out `-o`"),
    ],
)
def test_dumps_that_cannot_be(write, arguments: list[str], said: str) -> None:
    result = run(write("k.py", TWICE), *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr
    assert not Path("csrc").exists()


@pytest.mark.parametrize("option", ["--dump-ir", "--dump-ir=diff"])
def test_a_long_chain_is_printed(write, option: str) -> None:
    file = write("k.py", TWICE.replace("2 * x[i]", " + ".join(["x[i]"] * 300)))
    result = run(file, option)
    assert result.exit_code == 0 and result.stdout.count("x[i]") >= 300
