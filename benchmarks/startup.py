"""What a kernel costs before it runs: building, importing, translating, loading. Every measurement is a process."""

from __future__ import annotations

import itertools
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks import table
from benchmarks.table import Row
from py2cu.pipeline import translate_file
from py2cu.source import SourceFile
from py2cu.translation import TargetName

ROOT = Path(__file__).parent.parent
PATHS = os.pathsep.join([str(ROOT), *sys.path])  # children find what this process finds

LECTURE = """
import contextlib, io, os, pathlib, sys, time, torch
from torch.utils import cpp_extension
from benchmarks import lecture
from py2cu.build import toolchain
on_gpu = torch.cuda.is_available()
os.environ["PATH"] += os.pathsep + str(toolchain.find_ninja().parent)
cpp_extension.CUDA_HOME = cpp_extension.CUDA_HOME or str(toolchain.cuda_home())
if not on_gpu:
    os.environ["TORCH_CUDA_ARCH_LIST"] = "7.5+PTX"
    # This torch has no CUDA to link with: the two objects are made, as load_inline makes them, and nothing else.
    cpp_extension._run_ninja_build = lambda directory, *_, **__: os.system(
        f"cd {directory} && ninja main.o cuda.cuda.o >&2") and sys.exit("the lecture's source does not compile")
    cpp_extension._import_module_from_library = lambda *_, **__: None
    macros = pathlib.Path(sys.argv[1], "include/c10/cuda/impl/cuda_cmake_macros.h")  # nor has it this one header
    macros.parent.mkdir(parents=True)
    macros.write_text("#pragma once\\n#define C10_CUDA_BUILD_SHARED_LIBS\\n")
x = torch.zeros(3, 64, 64, dtype=torch.uint8, device="cuda" if on_gpu else "cpu")
started = time.perf_counter()
with contextlib.redirect_stdout(io.StringIO()):
    module = cpp_extension.load_inline(
        "lecture", [lecture.CPP], [lecture.CUDA], functions=["rgb_to_grayscale"], extra_cuda_cflags=["-O2"],
        with_cuda=True, build_directory=sys.argv[1], extra_include_paths=[f"{sys.argv[1]}/include"])
if on_gpu:
    module.rgb_to_grayscale(x)
    torch.cuda.synchronize()
print("took", time.perf_counter() - started)
"""

OURS = """
import sys, time, torch
on_gpu = torch.cuda.is_available()
x = torch.zeros(3, 4096, dtype=torch.uint8, device="cuda" if on_gpu else "cpu")
started = time.perf_counter()
from benchmarks.kernels import rgb2grey
if on_gpu:
    rgb2grey(x)
    torch.cuda.synchronize()
else:
    from py2cu.build import library
    library.build_library(rgb2grey.translation.cuda)
print("took", time.perf_counter() - started)
"""

CACHED = """
import sys, time, torch
x = torch.zeros(3, 16, dtype=torch.uint8, device=sys.argv[1])
if sys.argv[1] == "cuda":
    torch.cuda.synchronize()
started = time.perf_counter()
from benchmarks.kernels import rgb2grey
rgb2grey(x)
if sys.argv[1] == "cuda":
    torch.cuda.synchronize()
print("took", time.perf_counter() - started)
"""

IMPORT = """
import sys, time
started = time.perf_counter()
from py2cu import Index, kernel
print("took", time.perf_counter() - started)
assert not {"torch", "numba", "libcst", "jinja2"} & set(sys.modules)
"""


def rows(*, lecture: bool, device: str) -> Iterator[Row]:
    if lecture:
        yield build_row(device)
    yield table.bound("import py2cu (no torch)", table.median(lambda: timed(IMPORT), 9), 0.1)
    yield table.bound("py2cu translate, 20 kernels, process time", table.median(translate_once, 7), 0.5)
    what = f"translate_file, {LINES} lines of kernels, another text each time"
    yield table.bound(what, table.median(translate_warm, 7), LINES / 2000)
    with tempfile.TemporaryDirectory() as cache:
        timed(CACHED, device, PY2CU_CACHE_DIR=cache)
        ready = table.median(lambda: timed(CACHED, device, PY2CU_CACHE_DIR=cache), 9)
    yield table.bound(f"cached kernel, import to first result, {device}", ready, 0.05)


def build_row(device: str) -> Row:
    runs = 2 if device == "cuda" else 1  # minutes each on a small machine
    ours = table.median(lambda: in_fresh_cache(OURS), 5)
    peer = table.median(lambda: in_fresh_cache(LECTURE), runs)
    what = "grayscale, source to first result, cold" if device == "cuda" else "grayscale for CUDA, compiled, cold"
    return table.compare(what, ours, peer, "load_inline", 1 / 15)


def in_fresh_cache(script: str) -> float:
    with tempfile.TemporaryDirectory() as cache:
        return timed(script, cache, PY2CU_CACHE_DIR=cache)


def timed(script: str, *arguments: str, **variables: str) -> float:
    """The seconds that a script says it took, in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": PATHS, **variables}
    command = [sys.executable, "-c", script, *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"a measurement failed:\n{done.stdout}{done.stderr}")
    return float(done.stdout.split("took ")[-1])


def copied_kernels(copies: int) -> str:
    """A file of the kernels of `kernels.py`, each that many times under names of its own."""
    source = (ROOT / "benchmarks" / "kernels.py").read_text(encoding="utf-8")
    head, *kernels = source.split("\n\n\n@kernel")
    texts = [
        f"\n\n\n@kernel{text.replace('def ', f'def copy{copy}_', 1)}" for copy in range(copies) for text in kernels
    ]
    return head + "".join(texts)


MANY = copied_kernels(40)
LINES = MANY.count("\n")
_RUNS = itertools.count()


def translate_warm() -> float:
    """Seconds of process time for such a file, in this process: another text each time, as the latest stay parsed."""
    text = f"{MANY}\n# {next(_RUNS)}\n"
    before = time.process_time()
    translate_file(SourceFile("many.py", text), targets=[TargetName.CUDA])
    return time.process_time() - before


def translate_once() -> float:
    """Seconds of process time for a file of 20 kernels."""
    with tempfile.TemporaryDirectory() as place:
        file = Path(place, "twenty.py")
        file.write_text(copied_kernels(4), encoding="utf-8")
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [sys.executable, "-m", "py2cu", "translate", str(file), "-o", place],
            env={**os.environ, "PYTHONPATH": PATHS}, capture_output=True, check=True,
        )  # fmt: skip
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
