"""Tools are found where the contract says, in its order, and named by what they are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from py2cu import devices
from py2cu.build import toolchain
from py2cu.diagnostics import EnvironmentLacks


@pytest.fixture(autouse=True)
def _bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CXX", "CUDA_HOME", "CUDA_PATH", "TORCH_CUDA_ARCH_LIST"):
        monkeypatch.delenv(name, raising=False)


def executable(path: Path, text: str = "#!/bin/sh\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def toolkit(home: Path, libraries: str = "lib64") -> Path:
    """A CUDA toolkit as far as finding goes."""
    executable(home / "bin" / "nvcc", "nvcc itself")
    for file in (home / "include" / "cuda_runtime.h", home / libraries / "libcudart.so.13"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("")
    return home


def test_cxx_is_the_named_compiler_or_the_first_on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert toolchain.find_cxx() is None
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    gnu, own = executable(tmp_path / "bin" / "g++"), executable(tmp_path / "own")
    assert toolchain.find_cxx() == gnu
    monkeypatch.setenv("CXX", f"{own} -m64")
    assert toolchain.find_cxx() == own
    monkeypatch.setenv("CXX", "no-such-compiler")
    assert toolchain.find_cxx() is None
    monkeypatch.chdir(tmp_path)  # builds run in folders of their own
    monkeypatch.setenv("CXX", "./own")
    assert toolchain.find_cxx() == own


def test_ninja_is_found_beside_this_python_off_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    ninja = executable(tmp_path / "ninja")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    assert toolchain.find_ninja() == ninja


def test_nvcc_of_cuda_home_goes_before_the_one_on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_path, named = toolkit(tmp_path / "on_path"), toolkit(tmp_path / "named")
    monkeypatch.setenv("PATH", str(on_path / "bin"))
    assert toolchain.cuda_home() == on_path
    monkeypatch.setenv("CUDA_HOME", str(named))
    assert toolchain.find_nvcc() == named / "bin" / "nvcc"


def test_a_cuda_home_without_a_compiler_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(toolkit(tmp_path / "real") / "bin"))
    assert toolchain.cuda_home() == tmp_path / "real"


@pytest.mark.builds
def test_a_wrapper_on_path_leads_to_its_toolkit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = toolkit(tmp_path / "real")
    executable(tmp_path / "bin" / "nvcc", f"#!/bin/sh\necho '#$ TOP={home}/bin/..' >&2\n")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert toolchain.cuda_home() == home


def test_the_wheel_serves_where_path_has_no_nvcc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = toolkit(tmp_path / "nvidia" / "cu13", libraries="lib")
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    spec = SimpleNamespace(submodule_search_locations=[str(tmp_path / "nvidia")])
    monkeypatch.setattr("importlib.util.find_spec", lambda name: spec if name == "nvidia" else None)
    assert toolchain.cuda_home() == home
    assert toolchain.cuda_libraries(home) == home / "lib"
    assert toolchain.cuda_include(home) == home / "include"


def test_headers_of_a_conda_toolkit_are_per_platform(tmp_path: Path) -> None:
    include = tmp_path / "targets" / "x86_64-linux" / "include"
    include.mkdir(parents=True)
    (include / "cuda_runtime.h").write_text("")
    assert toolchain.cuda_include(tmp_path) == include


def test_identity_follows_the_file_and_wants_every_tool(tmp_path: Path) -> None:
    tool = executable(tmp_path / "tool")
    link = tmp_path / "link"
    link.symlink_to(tool)
    before = toolchain.tool_fingerprint(tool)
    assert before == toolchain.tool_fingerprint(link) and before is not None
    tool.write_text("another compiler")
    assert toolchain.tool_fingerprint(tool) not in (None, before)
    assert toolchain.tool_fingerprint(tool, None) is None


def test_the_cpu_has_one_identity() -> None:
    assert toolchain.cpu_identity() == toolchain.cpu_identity() and len(toolchain.cpu_identity()) == 16


@pytest.mark.parametrize(
    ("listed", "expected"),
    [
        ("9.0", ("9.0",)),
        ("8.0; 9.0+PTX", ("8.0", "9.0+PTX")),
        ("9.0a 8.0", ("8.0", "9.0a")),
        ("Hopper", ("9.0+PTX",)),
        ("Ampere;Turing", ("7.5+PTX", "8.0", "8.6+PTX")),
    ],
)
def test_the_arch_list_is_read_as_torch_reads_it(
    listed: str, expected: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", listed)
    assert toolchain.gpu_architectures() == expected


def test_an_unknown_architecture_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", "8.0;fast")
    with pytest.raises(EnvironmentLacks, match="names no CUDA architecture: 'fast'"):
        toolchain.gpu_architectures()


def test_architectures_are_those_of_the_gpus_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "capabilities", lambda: ((9, 0), (8, 6), (9, 0)))
    assert toolchain.gpu_architectures() == ("8.6", "9.0")
    monkeypatch.setattr(devices, "capabilities", lambda: ())
    assert toolchain.gpu_architectures() == ("7.5+PTX",)


def test_capabilities_are_those_that_nvidia_smi_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "sys", SimpleNamespace(modules={}))  # as if torch were not imported
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    executable(tmp_path / "nvidia-smi", "#!/bin/sh\nprintf '9.0\\n12.1\\n'\n")
    assert devices.capabilities.__wrapped__() == ((9, 0), (12, 1))
    executable(tmp_path / "nvidia-smi", "#!/bin/sh\necho no devices\nexit 9\n")
    assert devices.capabilities.__wrapped__() == ()


def test_gencode_asks_for_machine_code_and_ptx() -> None:
    assert toolchain.gencode_flags(("9.0a", "10.0+PTX")) == (
        "-gencode=arch=compute_90a,code=sm_90a",
        "-gencode=arch=compute_100,code=sm_100",
        "-gencode=arch=compute_100,code=compute_100",
    )


def test_finding_imports_no_torch() -> None:
    code = "from py2cu.build import toolchain as t; t.find_nvcc(); t.gpu_architectures(); "
    code += "import sys; print('torch' in sys.modules)"
    root = str(Path(toolchain.__file__).parents[2])
    run = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert run.stdout == "False\n"
