"""Faults around calls on the CPU: compilers that fail in every way, caches that cannot be used, builders that die."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import textwrap
import types
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from py2cu.build import cache, cpu_entry, libraries, store, toolchain  # noqa: E402
from py2cu.build.messages import BuildError  # noqa: E402
from py2cu.diagnostics import EnvironmentLacks  # noqa: E402
from py2cu.kernels import Kernel  # noqa: E402
from tests.support.kernels_that_fork import scaled  # noqa: E402
from tests.support.processes import processes_in, wait_for  # noqa: E402

pytestmark = [
    pytest.mark.builds,
    pytest.mark.skipif(toolchain.find_cxx() is None, reason="needs a C++ compiler"),
]
ROOT = Path(__file__).parents[1]
COMPILER = str(toolchain.find_cxx())


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty cache, and a process that has compiled nothing."""
    monkeypatch.setenv("PY2CU_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(libraries, "_loaded", {})
    monkeypatch.setattr(cache, "_private_roots", [])
    monkeypatch.setattr(cache, "_warned", [])
    yield tmp_path / "cache"
    wait_for(lambda: not processes_in(tmp_path), 2)  # killed ones need a moment to end


def use(monkeypatch: pytest.MonkeyPatch, folder: Path, script: str) -> Path:
    """Make a shell script the compiler; in it, `$REAL` is the real one, and `$out` the library to make."""
    path = folder / "compiler"
    head = f"#!/bin/sh\nREAL={COMPILER}\nfor word; do case $last in -o) out=$word;; esac; last=$word; done\n"
    path.write_text(f"{head}echo run >> {folder}/log\n{script}\n")
    path.chmod(0o755)
    monkeypatch.setenv("CXX", str(path))
    return path


def call() -> None:
    """Call a kernel that nothing in this process has called."""
    x = torch.ones(5)
    assert Kernel(scaled.python)(x).tolist() == [2.0] * 5


def files(root: Path) -> list[str]:
    """The suffixes of what is in the cache of libraries, without locks."""
    return sorted(path.suffix for path in root.glob("v2/libraries/*") if path.suffix != ".lock")


# --- compilers ----------------------------------------------------------------------------------------------------


def test_without_a_compiler_a_cached_kernel_runs(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    call()
    monkeypatch.setattr(libraries, "_loaded", {})
    monkeypatch.setenv("PATH", "")
    call()
    monkeypatch.setenv("PY2CU_CACHE_DIR", str(root) + "2")
    monkeypatch.setattr(libraries, "_loaded", {})
    with pytest.raises(EnvironmentLacks, match=r"no C\+\+ compiler was found\n  hint: install g\+\+"):
        call()
    monkeypatch.setenv("CXX", "nowhere-g++ -O1")
    with pytest.raises(EnvironmentLacks, match=r"CXX names nowhere-g\+\+, which is not here"):
        call()


@pytest.mark.parametrize("flags", ["-O1", "-O1 '-DWORDS=a b'"])
def test_flags_in_cxx_are_used_and_cached_apart(flags: str, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    call()
    monkeypatch.setattr(libraries, "_loaded", {})
    monkeypatch.setenv("CXX", f"{COMPILER} {flags}")
    call()
    assert files(root) == [".so", ".so"]


def test_a_wrapper_in_a_folder_with_spaces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "my tools"
    folder.mkdir()
    wrapper = folder / "cache it"
    wrapper.write_text(f'#!/bin/sh\necho "$1" > {tmp_path}/wrapped\nexec "$@"\n')
    wrapper.chmod(0o755)
    monkeypatch.setenv("CXX", f"'{wrapper}' {COMPILER} -O1")
    call()
    assert (tmp_path / "wrapped").read_text() == f"{COMPILER}\n"


def test_a_compiler_that_warns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    use(monkeypatch, tmp_path, 'echo "kernel.cpp:1:1: warning: error: all is well" >&2; exec $REAL "$@"')
    call()
    assert capfd.readouterr() == ("", "")


FAILING = {
    "hangs": ("sleep 60", "did not end within 1 seconds"),
    "makes nothing": ("exit 0", "made no library"),
    "makes no library": ("echo text > $out", "built does not load: .*"),
    "lacks the symbol": ("echo | $REAL -shared -x c++ - -o $out", "built does not load: .*undefined symbol"),
    "is killed": ("kill -9 $$", "was ended by SIGKILL"),
}


@pytest.mark.parametrize("fault", FAILING)
def test_a_compiler_that_fails_is_named(
    fault: str, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script, message = FAILING[fault]
    path = use(monkeypatch, tmp_path, script)
    monkeypatch.setattr(cpu_entry, "_SECONDS", 1.0)
    with pytest.raises(EnvironmentLacks, match=rf"the C\+\+ compiler `{path}` {message}") as caught:
        call()
    assert caught.value.hint
    wait_for(lambda: not processes_in(tmp_path), 2)
    monkeypatch.delenv("CXX")
    monkeypatch.setattr(cpu_entry, "_SECONDS", 60.0)
    call()
    assert set(files(root)) == {".so"}


@pytest.mark.parametrize("status", [3, 255])
def test_a_compiler_that_refuses_its_own_flags(status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A status beyond 128 need not be that of a signal: wrappers such as ssh and distcc exit with 255."""
    use(monkeypatch, tmp_path, f"echo 'g++: error: unrecognized option --nonsense'; exit {status}")
    with pytest.raises(BuildError, match="unrecognized option --nonsense\n  hint: check that this compiler"):
        call()


def test_the_reason_of_a_linker_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", f"{COMPILER} -Wl,--no-such-option")
    with pytest.raises(BuildError, match="no-such-option"):
        call()


@pytest.mark.parametrize("text", ["#!/nowhere/interpreter\n", "\x7fELF is no machine code"])
def test_a_compiler_that_does_not_run_is_named(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, tmp_path, "").write_text(text)
    with pytest.raises(EnvironmentLacks, match=r"the C\+\+ compiler `.*/compiler` does not run: "):
        call()


def test_a_compiler_that_is_killed_once_is_started_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As when memory was short for a moment; only for texts of which there are two versions."""
    use(monkeypatch, tmp_path, f'[ -e {tmp_path}/once ] || {{ touch {tmp_path}/once; kill -9 $$; }}; exec $REAL "$@"')
    monkeypatch.setattr(cpu_entry.CpuInstance, "can_be_lean", True)
    call()
    assert (tmp_path / "log").read_text() == "run\nrun\n"


def test_a_full_disk_is_no_error_of_the_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, tmp_path, "echo 'fatal error: error writing to x.s: No space left on device'; exit 1")
    with pytest.warns(UserWarning, match="no space left"), pytest.raises(OSError, match="no space left"):
        call()


# --- caches -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["with spaces", 'it\'s "quoted"', "$HOME;true", "a\nb", "ünïcode", "-o"])
def test_a_cache_on_an_odd_path(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PY2CU_CACHE_DIR", str(tmp_path / name))
    call()
    assert files(tmp_path / name) == [".so"]


def no_home(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("PY2CU_CACHE_DIR", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # as for a user that the system does not know


def read_only(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may write what is read-only: this is a file system that nobody may write."""
    monkeypatch.setenv("PY2CU_CACHE_DIR", "/proc/py2cu")


def noexec(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(folder: Path) -> None:
        raise store.Untrusted(folder, "its file system forbids to load libraries (noexec)")

    monkeypatch.setattr(store, "require_loadable", refuse)


@pytest.mark.parametrize("fault", [no_home, read_only, noexec])
@pytest.mark.filterwarnings("default")
def test_a_cache_that_cannot_be_used_is_one_warning(
    fault: object, root: Path, recwarn: pytest.WarningsRecorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert callable(fault)
    fault(root, monkeypatch)
    for _ in range(2):
        monkeypatch.setattr(libraries, "_loaded", {})
        call()
    assert ["the cache cannot be used" in str(each.message) for each in recwarn] == [True]
    assert files(root) == [] and len(files(cache._private_roots[0])) == 1


# --- several builders, and their death ----------------------------------------------------------------------------


def start(code: str, **environment: str) -> subprocess.Popen[str]:
    """Run `code` in another Python, with a kernel `scaled` and a tensor `x` of five ones."""
    lines = "import os, signal, sys, threading, time, torch\nfrom tests.support.kernels_that_fork import scaled\n"
    lines += "signal.signal(signal.SIGINT, signal.default_int_handler)\nx = torch.ones(5)\n" + textwrap.dedent(code)
    variables = os.environ | {"PYTHONPATH": str(ROOT)} | environment
    return subprocess.Popen(
        [sys.executable, "-c", lines], env=variables, stdout=subprocess.PIPE, text=True, start_new_session=True
    )


def finish(process: subprocess.Popen[str]) -> str:
    try:
        output, _ = process.communicate(timeout=120)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    assert process.returncode == 0
    return output


def test_of_32_threads_one_compiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, tmp_path, 'exec $REAL "$@"')
    kernel, others = Kernel(scaled.python), [Kernel(scaled.python) for _ in range(16)]
    with ThreadPoolExecutor(32) as threads:
        results = list(threads.map(lambda k: k(torch.ones(5)).tolist(), [kernel] * 16 + others))
    assert results == [[2.0] * 5] * 32
    assert (tmp_path / "log").read_text() == "run\n"


def test_of_16_processes_one_compiles(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, tmp_path, 'exec $REAL "$@"')
    code = """
        scaled.translation
        children = []
        for _ in range(16):
            if not (child := os.fork()):
                signal.alarm(60)
                os._exit(scaled(x).tolist() != [2.0] * 5)
            children.append(child)
        assert [os.waitpid(child, 0)[1] for child in children] == [0] * 16
    """
    finish(start(code))
    assert (tmp_path / "log").read_text() == "run\n"
    assert files(root) == [".so"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_no_compiler_outlives_its_caller(
    number: signal.Signals, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process waits for the build, and goes on; an interrupted one can call the kernel afterwards."""
    ready = tmp_path / "ready"
    wait = "sleep 50 & sleep 50"
    use(
        monkeypatch,
        tmp_path,
        f'[ -e {ready} ] || {{ $REAL "$@" -save-temps; touch {ready}; {wait}; }}; exec $REAL "$@"',
    )
    code = """
        try: scaled(x)
        except KeyboardInterrupt: assert scaled(x).tolist() == [2.0] * 5
    """
    _ = Kernel(scaled.python).translation  # which the other process then takes from the cache
    process = start(code)
    wait_for(ready.exists)
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(call)
        with pytest.raises(TimeoutError):
            waiting.result(timeout=0.3)
        assert len(processes_in(root)) > 2
        process.send_signal(number)
        waiting.result(timeout=20)
    assert process.wait(20) == (0 if number == signal.SIGINT else -signal.SIGKILL)
    process.communicate()
    wait_for(lambda: not processes_in(tmp_path), 2)
    assert files(root) == [".so"]


# --- memory -------------------------------------------------------------------------------------------------------


def test_forms_and_launches_of_a_kernel_are_freed_with_it() -> None:
    kernel = Kernel(scaled.python)
    x = torch.ones(5)
    for number in range(1, 1100):
        kernel[number, 32](x, torch.empty(5))
    assert len(kernel._grids) == 1024
    kernel(x=x)
    kernel(x, out=torch.empty(5))
    kernel(x, torch.empty(5))
    assert kernel._call is not None and len(kernel._call.launchers) == 4
    freed = weakref.ref(kernel), weakref.ref(kernel._call), weakref.ref(kernel._call.instances)
    del kernel
    gc.collect()
    assert [each() for each in freed] == [None] * 3
    assert len(libraries._loaded) == 1


def test_a_kernel_that_goes_runs_no_python() -> None:
    """An interrupt during a collection would be ignored there."""
    kernel = Kernel(types.FunctionType(scaled.python.__code__, scaled.python.__globals__))
    kernel(torch.ones(5))
    kernel(torch.ones(5, requires_grad=True))
    kernel.simulate(torch.ones(5))
    freed, called = weakref.ref(kernel.python), []
    gc.collect()
    sys.setprofile(lambda frame, event, _: called.append(frame.f_code.co_name) if event == "call" else None)
    del kernel
    gc.collect()
    sys.setprofile(None)
    assert freed() is None
    assert called == []
