"""The command line: what is printed where, what is written, and the exit code of every ending."""

from __future__ import annotations

import datetime
import io
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import py2cu
from py2cu.build import cache
from py2cu.build.store import Kind
from py2cu.cli import console
from py2cu.cli.app import app
from py2cu.cli.loading import load_files
from py2cu.codes import CODES
from py2cu.diagnostics import EnvironmentLacks, InternalError

HEAD = """\
from jaxtyping import Float32
from torch import Tensor
from py2cu import Constexpr, Index, blockDim, blockIdx, kernel, threadIdx

"""
TWICE = """
@kernel
def twice(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
    out[i] = 2 * x[i]
"""
NEGATE = TWICE.replace("twice", "negate").replace("2 * x[i]", "-x[i]")
UNGUARDED = """
@kernel
def ungrd(x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
    i = blockIdx.x * blockDim.x + threadIdx.x
    out[i] = x[i]
"""
COMPACTED = """
from jaxtyping import Int32
from py2cu import atomic
@kernel(init={"count": 0})
def compact(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"], count: Int32[Tensor, "1"]):
    if x[i] > 0:
        out[atomic.add(count, 0, 1)] = x[i]
"""
GATHERED = """
from jaxtyping import Int32
@kernel
def gather(i: Index["n"], x: Float32[Tensor, "m"], index: Int32[Tensor, "n"], out: Float32[Tensor, "n"]):
    out[i] = x[index[i]]
"""
KEPT = """
@kernel
def kept(i: Index["n"], x: Float32[Tensor, "n"], flag: Float32[Tensor, "1"], out: Float32[Tensor, "n"]):
    out[i] = x[i] + flag[0]
    flag[0] = flag[0]
"""
SCALED = """
@kernel
def scaled(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"], by: Constexpr[int]):
    out[i] = by * x[i]
"""
WRONG = TWICE.replace("2 * x[i]", "2 * x + y")
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(py2cu.__file__).parents[1])}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def run(*args: str | Path) -> Result:
    return CliRunner().invoke(app, [str(arg) for arg in args])


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Writes a file of kernels into the current directory, and gives its name."""
    monkeypatch.chdir(tmp_path)

    def write(name: str, *kernels: str) -> str:
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(HEAD + "\n".join(kernels))
        return name

    return write


# --- translate ---


def test_translate_prints_the_three_texts_each_under_its_name(write) -> None:
    result = run("translate", write("k.py", TWICE))
    assert result.exit_code == 0
    assert re.findall(r"^// --- (.*) ---$", result.stdout, re.MULTILINE) == ["k.cu", "k.h", "k.cpp"]
    assert "__global__ void twice_kernel" in result.stdout
    assert result.stderr == ""


def test_translate_for_the_cpu(write) -> None:
    result = run("translate", write("k.py", TWICE), "--target", "cpu")
    assert result.exit_code == 0 and "__global__" not in result.stdout
    assert "// --- k_cpu.cpp ---" in result.stdout


def test_translate_writes_what_it_prints(write) -> None:
    name = write("k.py", TWICE, NEGATE)
    printed = run("translate", name).stdout
    result = run("translate", name, "-o", "deep/csrc")
    assert (result.exit_code, result.stdout) == (0, "")
    assert sorted(path.name for path in Path("deep/csrc").iterdir()) == ["k.cpp", "k.cu", "k.h"]
    assert all(path.read_text().strip() in printed for path in Path("deep/csrc").iterdir())


def test_translate_one_kernel_of_a_file(write) -> None:
    name = write("k.py", TWICE, NEGATE)
    text = run("translate", name, "--kernel", "negate").stdout
    assert "negate_kernel" in text and "twice_kernel" not in text
    result = run("translate", name, "--kernel", "nagate")
    assert result.exit_code == 2
    assert "error[P107]: there is no kernel called `nagate`" in result.stderr
    assert "hint: did you mean `negate`?" in result.stderr
    assert "hint: its kernels are twice, negate" in run("translate", name, "--kernel", "zero").stderr


def test_template_arguments_get_the_values_that_are_asked_for(write) -> None:
    names = [write("k.py", TWICE), write("t.py", SCALED)]
    without = run("translate", *names)
    assert "template <>" not in without.stdout
    assert "note[P311]" in without.stderr and "`--constexpr by=16,32`" in without.stderr
    result = run("translate", *names, "--constexpr", "by=2", "--constexpr", "by=3,2")
    assert re.findall(r"cudaError_t scaled_launch<(.*)>\(.* n, cudaStream_t", result.stdout) == ["2", "3"]
    assert result.stderr == ""


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("bye=2", "no kernel here has a `Constexpr[int]` parameter `bye`\n  hint: did you mean `by`?"),
        ("by", "`by` is not of the form tile=16,32"),
        ("by=-1", "`by=-1` is not of the form tile=16,32"),
        ("by=2147483648", "2147483648 is more than 2147483647"),
    ],
)
def test_values_that_no_template_argument_can_have(write, given: str, said: str) -> None:
    result = run("translate", write("t.py", SCALED), "-o", "csrc", "--constexpr", given)
    assert result.exit_code == 2 and said in result.stderr
    assert not Path("csrc").exists()


@pytest.mark.parametrize("target", ["cuda", "cpu"])
def test_launchers_in_a_namespace(write, target: str) -> None:
    name = write("k.py", TWICE)
    kernel, header, binding = (
        text.rstrip() for text in run_texts("translate", name, "--target", target, "--namespace", "mine::kernels")
    )
    for text in (kernel, header):
        assert text.count("\nnamespace mine::kernels {\n") == 1 and text.endswith("\n}  // namespace mine::kernels")
    assert " mine::kernels::twice_launch(" in binding and " twice_launch(" not in binding
    assert ("mine::kernels::Dim3" in binding) is (target == "cpu")
    assert not any("mine" in text for text in run_texts("translate", name, "--target", target))


def run_texts(*arguments: str) -> list[str]:
    """The texts that `translate` prints."""
    result = run(*arguments)
    assert result.exit_code == 0, result.stderr
    return re.split(r"^// --- .* ---$", result.stdout, flags=re.MULTILINE)[1:]


@pytest.mark.parametrize(
    "namespace", ["3x", "mine::", "std", "a::cuda", "class", "a-b", "dim3", "sqrtf", "a::INFINITY"]
)
def test_names_that_no_namespace_can_have(write, namespace: str) -> None:
    result = run("translate", write("k.py", TWICE), "--namespace", namespace)
    assert result.exit_code == 2 and "cannot name a namespace of the emitted C++" in result.stderr


@pytest.mark.parametrize(("command", "option"), [("build", "--files"), ("check", "--built")])
def test_a_namespace_is_that_of_written_files(write, command: str, option: str) -> None:
    result = run(command, write("k.py", TWICE), "--namespace", "mine")
    assert result.exit_code == 2 and f"hint: add `{option}`" in result.stderr


@pytest.mark.builds
def test_files_with_a_namespace_are_built_and_checked(write) -> None:
    name = write("k.py", TWICE, SCALED)
    assert run("check", name, "--device", "cpu", "--built", "--namespace", "mine").exit_code == 0
    inside, outside = (
        run("build", name, "--target", "cpu", "--files", *options).stdout.split()[1]
        for options in (("--namespace", "mine"), ())
    )
    symbols = [Path(path).read_bytes().count(b"4mine12twice_launch") for path in (inside, outside)]
    assert symbols[0] > 0 and symbols[1] == 0


def test_notes_on_performance_are_asked_for(write) -> None:
    name = write("k.py", TWICE.replace("2 *", "(1.0 / i) *"))
    assert "note[P701]" in run("translate", name, "--notes").stderr
    assert run("translate", name).stderr == ""


def test_notes_go_to_stderr(write) -> None:
    result = run("translate", write("k.py", UNGUARDED))
    assert result.exit_code == 0
    assert "note[P406]" in result.stderr and "P406" not in result.stdout


def test_errors_of_all_files_come_together_and_nothing_is_written(write) -> None:
    names = [write("good.py", TWICE), write("bad.py", WRONG), write("worse.py", WRONG)]
    result = run("translate", *names, "missing.py", "-o", "csrc")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.splitlines()[-1] == "5 errors"
    assert re.findall(r"^(\w+\.py:\d+:\d+: error\[P\d+\])", result.stderr, re.MULTILINE) == [
        "bad.py:8:18: error[P303]",
        "bad.py:8:22: error[P201]",
        "worse.py:8:18: error[P303]",
        "worse.py:8:22: error[P201]",
    ]
    assert "missing.py: error[P100]: cannot read the file: No such file or directory" in result.stderr
    assert not Path("csrc").exists()


def test_existing_texts_stay_as_they_are_when_a_translation_fails(write) -> None:
    run("translate", write("k.py", TWICE), "-o", "csrc")
    before = {path: path.read_text() for path in Path("csrc").iterdir()}
    assert run("translate", write("k.py", WRONG), "-o", "csrc").exit_code == 2
    assert {path: path.read_text() for path in Path("csrc").iterdir()} == before


def test_two_files_of_one_name_do_not_overwrite_each_other(write) -> None:
    result = run("translate", write("a/k.py", TWICE), write("b/k.py", NEGATE), "-o", "csrc")
    assert result.exit_code == 2 and "two of the files would write csrc/k." in result.stderr
    assert not Path("csrc").exists()


def test_a_file_in_the_place_of_the_directory(write) -> None:
    Path("csrc").write_text("mine")
    for directory in ("csrc", "csrc/deeper"):
        result = run("translate", write("k.py", TWICE), "-o", directory)
        assert result.exit_code == 2 and f"error: cannot write to {directory}: " in result.stderr
    assert Path("csrc").read_text() == "mine"


def test_a_directory_in_the_place_of_a_text(write) -> None:
    Path("csrc/k.cpp").mkdir(parents=True)
    result = run("translate", write("k.py", TWICE), "-o", "csrc")
    assert result.exit_code == 2 and "it is a directory" in result.stderr
    assert [path.name for path in Path("csrc").iterdir()] == ["k.cpp"]


def test_translate_neither_runs_the_file_nor_loads_torch(write) -> None:
    name = write("k.py", 'raise SystemExit("it ran")', TWICE)
    probe = (
        "import sys; from py2cu.cli.app import app; app(sys.argv[1:], standalone_mode=False); "
        "print([m for m in ('torch', 'numpy', 'numba', 'rich') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", probe, "translate", name], capture_output=True, text=True, check=False, env=ENVIRONMENT
    )
    assert done.returncode == 0 and done.stdout.splitlines()[-1] == "[]", done.stderr


# --- check and build ---

torch_is_here = pytest.importorskip("torch", reason="check and build run kernels")


@pytest.mark.builds
def test_check_tells_kernel_by_kernel_what_agrees(write) -> None:
    result = run("check", write("k.py", TWICE, NEGATE), "--device", "cpu")
    assert result.exit_code == 0, result.output
    head, *rows = [line.split() for line in result.stdout.splitlines()[:3]]
    assert head == ["kernel", "device", "cases", "compared", "accepted", "result"]
    assert [(row[0], row[1], row[-1]) for row in rows] == [("twice", "cpu", "agrees"), ("negate", "cpu", "agrees")]


@pytest.mark.builds
def test_check_says_what_is_not_checked_and_what_would_check_it(write) -> None:
    name = write("k.py", COMPACTED, TWICE)
    result = run("check", name, "--device", "cpu")
    assert result.exit_code == 0, result.output
    assert re.search(r"(?m)^compact +cpu +9 +9 +903 +not checked$", result.stdout)
    assert "hint: `--unordered out` compares `out` in any order of the elements" in result.stdout
    warning = "warning: `compact` is not checked: any value was accepted for 903 of 912 elements"
    assert warning in result.stderr and "twice" not in result.stderr.splitlines()[-1]
    result = run("check", name, "--device", "cpu", "--unordered", "out")
    assert result.exit_code == 0, result.output
    assert re.search(r"(?m)^compact +cpu +9 +912 +0 +agrees$", result.stdout)
    assert "not checked" not in result.output


def test_check_refuses_unordered_names_that_no_kernel_writes(write) -> None:
    result = run("check", write("k.py", COMPACTED), "--device", "cpu", "--unordered", "ot")
    assert result.exit_code == 2
    assert "no kernel here writes an array `ot`\n  hint: did you mean `out`?" in result.stderr


@pytest.mark.builds
def test_check_shows_skipped_cases(write) -> None:
    result = run("check", write("k.py", GATHERED), "--device", "cpu")
    assert result.exit_code == 0, result.output
    assert "agrees" in result.stdout
    assert re.search(r"(?m)^  skipped: m=\d+, n=\d+, random values: .* out of range", result.stdout)
    assert re.search(r"(?m)^  … and \d+ more cases skipped$", result.stdout)


@pytest.mark.builds
def test_check_fails_where_threads_race_unless_that_is_accepted(write) -> None:
    name = write("k.py", KEPT)
    result = run("check", name, "--device", "cpu")
    assert result.exit_code == 1
    assert re.search(r"(?m)^kept .* RACES$", result.stdout)
    assert "hint: `--race 'same value'` accepts races that store the value already there" in result.stdout
    assert run("check", name, "--device", "cpu", "--race", "same value").exit_code == 0


def test_a_progress_bar_is_shown_on_a_terminal_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    from py2cu.check import progress_bar

    with progress_bar("checking") as progress:
        assert progress is None
    terminal = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", terminal)
    with progress_bar("checking [k]") as progress:
        assert progress is not None
        progress(3, 9)
    assert "checking [k]" in terminal.getvalue() and "3/9" in terminal.getvalue()


@pytest.mark.builds
def test_check_one_kernel(write) -> None:
    result = run("check", write("k.py", TWICE, NEGATE), "--device", "cpu", "--kernel", "negate")
    assert result.exit_code == 0 and "twice" not in result.stdout


@pytest.mark.builds
def test_check_and_build_without_contraction(write, monkeypatch: pytest.MonkeyPatch) -> None:
    from py2cu.build import library

    asked = []
    planned = library._plan
    monkeypatch.setattr(library, "_plan", lambda artifacts, fma: (asked.append(fma), planned(artifacts, fma))[1])
    name = write("k.py", TWICE)
    for options, fma in (([], True), (["--no-fma"], False)):
        assert run("check", name, "--device", "cpu", "--built", *options).exit_code == 0
        assert run("build", name, "--target", "cpu", "--files", *options).exit_code == 0
        assert set(asked) == {fma}
        asked.clear()


@pytest.mark.builds
def test_check_of_template_arguments(write) -> None:
    name = write("t.py", SCALED)
    for values in ([], ["--constexpr", "by=3,5"]):
        result = run("check", name, "--device", "cpu", *values)
        assert result.exit_code == 0, result.output
        assert re.search(r"scaled +cpu +9 .* agrees", result.stdout)
    assert "has a `Constexpr[int]` parameter `to`" in run("check", name, "--constexpr", "to=2").stderr


@pytest.mark.builds
def test_check_fails_where_the_compiled_kernel_differs(write, monkeypatch: pytest.MonkeyPatch) -> None:
    from py2cu.kernels import Kernel

    monkeypatch.setattr(Kernel, "run", lambda self, device, arguments: arguments["out"].fill_(7))
    result = run("check", write("k.py", TWICE), "--device", "cpu")
    assert result.exit_code == 1
    assert "DIFFERS" in result.stdout and "out[0]: Python" in result.stdout and "line 8" in result.stdout


def test_check_shows_what_is_refused_with_a_caret(write) -> None:
    result = run("check", write("k.py", WRONG, NEGATE), "--device", "cpu")
    assert result.exit_code == 2
    assert "k.py:8:18: error[P303]" in result.stderr and "| " + " " * 17 + "^" in result.stderr
    assert result.stderr.splitlines()[-1] == "2 errors"


@pytest.mark.builds
def test_check_judges_constants_as_python_does(write) -> None:
    """Only running the file tells K: the translator alone would refuse it."""
    name = write("k.py", "globals()['K'] = 2", TWICE.replace("2 *", "K *"))
    assert run("translate", name).exit_code == 2
    assert run("check", name, "--device", "cpu").exit_code == 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = 1\nx / 0\n", "k.py:6: error: the file raises ZeroDivisionError: division by zero"),
        ("import nowhere_to_be_found\n", "k.py:5: error: the file raises ModuleNotFoundError: No module named"),
        ("raise SystemExit(0)\n", "k.py:5: error: the file raises SystemExit: 0"),
        ("def f(:\n", "k.py:5:"),
        ("return 3\n", "k.py:5: error: 'return' outside function"),
    ],
)
def test_a_file_that_cannot_be_imported(write, text: str, said: str) -> None:
    result = run("check", write("k.py", text), "--device", "cpu")
    assert result.exit_code == 2 and said in result.stderr and "Traceback" not in result.output, result.output


def test_check_of_a_file_without_kernels(write) -> None:
    result = run("check", write("k.py", "x = 1"), "--device", "cpu")
    assert result.exit_code == 2 and "k.py: error[P107]: there is no kernel to import" in result.stderr


@pytest.mark.builds
def test_check_finds_the_modules_beside_the_file_and_leaves_nothing_there(write) -> None:
    write("lib/neighbour_of_k.py", "FACTOR = 2")
    result = run("check", write("lib/k.py", "from neighbour_of_k import FACTOR", TWICE), "--device", "cpu")
    assert result.exit_code == 0, result.output
    assert not list(Path("lib").glob("__pycache__/k.*"))


def test_files_of_two_folders_have_their_own_modules_of_one_name(write, capsys: pytest.CaptureFixture[str]) -> None:
    for folder, factor in (("a", 2), ("b", 3)):
        write(f"{folder}/beside_them.py", f"print('{folder} imported')\ndef times(v):\n    return {factor} * v\n")
        for name in ("k", "l"):
            kernel = TWICE.replace("twice", f"{folder}_{name}").replace("2 * x", "times(x").replace("[i]\n", "[i])\n")
            write(f"{folder}/{name}.py", "from beside_them import times", kernel)
    files = [Path("a/k.py"), Path("b/k.py"), Path("a/l.py"), Path("b/l.py")]
    path = sys.path.copy()
    try:
        texts = [loaded.kernels[0].cuda_source for loaded in load_files(files, None)]
        assert [re.findall(r"return (\d) \* v", text) for text in texts] == [["2"], ["3"], ["2"], ["3"]]
        assert capsys.readouterr().out == "a imported\nb imported\n"
        assert sys.path == path
    finally:
        del sys.modules["beside_them"]


@pytest.mark.builds
def test_build_fills_the_cache_that_calls_use(write) -> None:
    file = write("k.py", TWICE)
    result = run("build", file, "--target", "cpu")
    assert result.exit_code == 0 and result.stdout == "twice: 1 instance\n"
    assert result.stderr.strip() == "building twice for cpu …"
    assert re.search(r"^libraries +twice ", run("cache", "list").stdout, re.MULTILINE)
    result = run("build", file, "--target", "cpu", "--files")
    name, path = result.stdout.strip().split(": ")
    assert result.exit_code == 0 and name == "twice" and Path(path).is_file()


@pytest.mark.builds
@pytest.mark.parametrize("options", [[], ["--built"]])
def test_check_of_what_calls_run_and_of_files(write, options: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from py2cu.call.instances import Instances

    ways: list[bool] = []
    run_instance = Instances.run

    def noted(self: Instances, *args: Any) -> Any:
        ways.append(self.files is not None)
        return run_instance(self, *args)

    monkeypatch.setattr(Instances, "run", noted)
    assert run("check", write("k.py", TWICE), "--device", "cpu", *options).exit_code == 0
    assert {*ways} == {bool(options)}


def test_a_device_that_is_not_here(write) -> None:
    if torch_is_here.cuda.is_available():
        pytest.skip("it is here")
    result = run("check", write("k.py", TWICE), "--device", "cuda")
    assert result.exit_code == 3 and "hint: " in result.stderr


def test_without_torch(write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    for command in ("check", "build"):
        result = run(command, write("k.py", TWICE))
        assert result.exit_code == 3 and "this command needs torch" in result.stderr
        assert "hint: pip install 'torch>=2.11'" in result.stderr


# --- how commands end ---


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (KeyboardInterrupt(), 130, ""),
        (EnvironmentLacks("no ninja", "pip install ninja"), 3, "error: no ninja\n  hint: pip install ninja\n"),
        (InternalError("a node without a type"), 70, "internal error: a node without a type\n"),
        (ZeroDivisionError("oh"), 70, "internal error: ZeroDivisionError: oh\n"),
    ],
)
def test_what_commands_raise(monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, said: str) -> None:
    def fail() -> None:
        raise error

    monkeypatch.setattr("py2cu.cli.doctor.diagnose", fail)
    monkeypatch.delenv("PY2CU_DEBUG", raising=False)
    result = run("doctor")
    assert result.exit_code == code and result.output.startswith(said) and "Traceback" not in result.output
    assert ("please report it" in result.output) is (code == 70)


def test_a_traceback_for_those_who_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("py2cu.cli.doctor.diagnose", lambda: 1 / 0)
    monkeypatch.setenv("PY2CU_DEBUG", "1")
    assert isinstance(run("doctor").exception, ZeroDivisionError)


def test_a_build_that_a_compiler_refuses(write, monkeypatch: pytest.MonkeyPatch) -> None:
    from py2cu.build.messages import BuildError

    def refuse(*args: object, **kwargs: object) -> None:
        raise BuildError([], "cc1plus: fatal error: no space left", "free some")

    monkeypatch.setattr("py2cu.build.instances.fill_cache", refuse)
    result = run("build", write("k.py", TWICE), "--target", "cpu")
    assert result.exit_code == 3 and "no space left" in result.stderr and "hint: free some" in result.stderr


def test_colour_on_a_terminal_only(write, monkeypatch: pytest.MonkeyPatch) -> None:
    from py2cu.diagnostics import TranslationError
    from py2cu.pipeline import translate_file
    from py2cu.source import SourceFile

    with pytest.raises(TranslationError) as refused:
        translate_file(SourceFile("k.py", HEAD + WRONG))
    item = refused.value.diagnostics[0]
    assert console.rendered(item) == item.render()
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert console.rendered(item).count("\x1b[31m") == 2
    assert re.sub(r"\x1b\[\d+m", "", console.rendered(item)) == item.render()
    monkeypatch.setenv("NO_COLOR", "1")
    assert console.rendered(item) == item.render()


# --- explain, doctor, help ---


@pytest.mark.parametrize("spelled", ["P301", "p301", "error[P301]"])
def test_explain(spelled: str) -> None:
    result = run("explain", spelled)
    assert result.exit_code == 0 and result.stdout.startswith("P301: ") and "Wrong:" in result.stdout


def test_explain_lists_every_code() -> None:
    assert [line.split()[0] for line in run("explain").stdout.splitlines()[1:]] == list(CODES)


def test_explain_an_unknown_code() -> None:
    result = run("explain", "P2O1")
    assert result.exit_code == 2
    assert "there is no code P2O1; did you mean P201?" in result.stderr and "P407" not in result.stderr


def test_doctor_says_what_is_here() -> None:
    result = run("doctor")
    assert result.exit_code in (0, 3) and "torch" in result.stdout


def test_the_cache_is_listed_and_cleared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PY2CU_CACHE_DIR", str(tmp_path / "cache"))
    assert run("cache", "list").stdout.split("\n") == ["kind  name  size  last use", ""]
    for key, name in (("a", "add"), ("b", "softmax")):
        cache.put(Kind.CUBIN, key, name, bytes(4000))
        os.utime(tmp_path / "cache" / "v2" / "cubins" / f"{key}.cubin", (1e9, 1e9 + ord(key)))
    (tmp_path / "cache" / "v2" / "cubins" / "a.cubin").write_bytes(bytes(10))
    listed = run("cache", "list").stdout.splitlines()
    assert listed[0].split() == ["kind", "name", "size", "last", "use"] and len(listed) == 3
    assert sorted(line.split()[1] for line in listed[1:]) == ["(damaged)", "softmax"]
    last_use = datetime.datetime.fromtimestamp(int(1e9) + ord("b"))
    assert f"cubins  softmax    4.1 kB  {last_use}" in listed
    assert run("cache", "clear").stdout == "removed 2 entries, 4.1 kB\n"
    assert run("cache", "clear").stdout == "removed 0 entries, 0.0 kB\n"
    (tmp_path / "cache").chmod(0o777)
    for command in ("list", "clear"):
        result = run("cache", command)
        assert result.exit_code == 3 and "other users may write it" in result.stderr


@pytest.mark.parametrize("command", ["translate", "check", "build", "cache", "explain", "doctor"])
def test_help_teaches_by_example(command: str) -> None:
    result = run(command, "--help")
    assert result.exit_code == 0 and f"py2cu {command}" in result.stdout.partition("Example")[2]


def test_version() -> None:
    assert run("--version").stdout == f"py2cu {py2cu.__version__}\n"


@pytest.mark.parametrize("args", [["translate"], ["frobnicate"], ["translate", "k.py", "--target", "tpu"], ["check"]])
def test_wrong_usage(args: list[str]) -> None:
    assert run(*args).exit_code == 2


def test_python_dash_m() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "py2cu", "--version"], capture_output=True, text=True, check=False, env=ENVIRONMENT
    )
    assert (done.returncode, done.stdout) == (0, f"py2cu {py2cu.__version__}\n")


def test_a_reader_that_goes_away_costs_no_traceback(write) -> None:
    command = f"{sys.executable} -m py2cu translate {write('k.py', TWICE)} | head -1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False, env=ENVIRONMENT)
    assert "Traceback" not in done.stderr
