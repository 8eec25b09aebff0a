"""A process that has called kernels on the CPU can fork, whatever its threads do: the child waits for none of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

pytestmark = pytest.mark.builds

SECONDS = 120  # a child that hangs is an error, not a test run that never ends

SETUP = """
import multiprocessing, os, signal, tempfile, threading, time, torch
from py2cu.build import libraries, processes
from py2cu.kernels import Kernel
from tests.support import kernels_of_blocks as blocks
from tests.support.kernels_that_fork import grown, scaled, summed, taken_in_turns

torch.cuda.is_available = lambda: False
torch.set_num_threads(2)


def call(number):
    x = torch.full((100,), float(number))
    assert scaled(x).tolist() == [2.0 * number] * 100
    assert scaled[(3, 1, 1), 64](x, out := torch.empty(100)) is None and out.tolist() == [2.0 * number] * 100
    assert summed(x.reshape(4, 25)).tolist() == [25.0 * number] * 4
    assert grown(x, by=3).tolist() == [number + 3.0] * 100
    assert taken_in_turns(torch.zeros(8, dtype=torch.int32)).item() == 8
    assert blocks.scan(torch.ones(300, dtype=torch.int32))[127] == 128
    return number


LARGE = torch.ones(1_000_000), torch.empty(1_000_000), torch.ones(1_000_000, dtype=torch.int32)


def call_large():
    # Launches of many blocks: the parent runs them on several threads.
    x, out, whole = LARGE
    scaled(x, out)
    assert out[-1] == 2
    grown(x, out, by=3)
    assert out[-1] == 4
    assert summed(x.reshape(1000, 1000))[-1] == 1000
    assert taken_in_turns(torch.zeros(4000, dtype=torch.int32)).item() == 4000
    assert blocks.scan(whole)[127] == 128


def fork(run):
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        run()
        os._exit(0)
    return os.waitpid(child, 0)[1]


def main():
"""
WAYS = {
    "os.fork": """
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        os._exit(call(5) - 5)
    assert os.waitpid(child, 0)[1] == 0
    call(6)
""",
    "multiprocessing": """
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map_async(call, range(8)).get(60) == [*range(8)]
""",
    "a data loader": """
    class Numbers(torch.utils.data.Dataset):
        def __len__(self):
            return 8

        def __getitem__(self, number):
            return scaled(torch.full((3,), float(call(number))))

    options = dict(batch_size=4, num_workers=2, multiprocessing_context="fork", timeout=60)
    loader = torch.utils.data.DataLoader(Numbers(), **options)
    assert torch.cat([*loader]).tolist() == [[2.0 * number] * 3 for number in range(8)]
""",
    "after launches on many threads": """
    def child():
        call_large()
        call(7)
        assert len(os.listdir("/proc/self/task")) == 1 and fork(call_large) == 0

    call_large()
    assert len(os.listdir("/proc/self/task")) > 1  # else this shows nothing
    assert fork(child) == fork(child) == 0
    call_large()
""",
    "a data loader after launches on many threads": """
    class Ones(torch.utils.data.Dataset):
        def __len__(self):
            return 8

        def __getitem__(self, number):
            call_large()
            return scaled(LARGE[0])[:3].clone()

    call_large()
    options = dict(batch_size=4, num_workers=2, multiprocessing_context="fork", timeout=60)
    loader = torch.utils.data.DataLoader(Ones(), **options)
    assert torch.cat([*loader]).tolist() == [[2.0] * 3] * 8
""",
    "while another thread compiles": """
    new, x = Kernel(scaled.python), torch.ones(3)
    libraries._loaded.clear()
    parent, compiling, run = os.getpid(), threading.Event(), processes.run

    def slow(*values, **options):
        if os.getpid() == parent:
            compiling.set()
            time.sleep(1)
        return run(*values, **options)

    def child():
        assert new(x).tolist() == Kernel(scaled.python)(x).tolist() == [2.0] * 3
        other = Kernel(scaled.python).without_fma()
        libraries._loaded.clear()
        assert other(x).tolist() == [2.0] * 3

    processes.run = slow
    with tempfile.TemporaryDirectory() as os.environ["PY2CU_CACHE_DIR"]:
        with libraries._LOADING:
            thread = threading.Thread(target=new, args=[x])
            thread.start()
            assert compiling.wait(60)
            helper = []
            forking = threading.Thread(target=lambda: helper.append(fork(child)))  # this thread holds _LOADING
            forking.start()
            forking.join()
            assert helper == [0]
        thread.join()
    assert new(x).tolist() == [2.0] * 3
""",
}


@pytest.mark.parametrize("way", WAYS)
def test_a_child_waits_for_nothing(way: str, tmp_path: Path) -> None:
    script = tmp_path / "forks.py"
    end = 'if __name__ == "__main__":\n    call(1)\n    main()\n    print("done")\n'
    script.write_text(SETUP.lstrip() + WAYS[way].lstrip("\n") + "\n\n" + end, encoding="utf-8")
    environment = {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])}
    done = run([sys.executable, "-W", "ignore", str(script)], environment)
    assert done == "done\n"


def run(command: list[str], environment: dict[str, str]) -> str:
    """What it prints. In a session of its own: what hangs goes with its children."""
    with subprocess.Popen(
        command, env=os.environ | environment, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            output, _ = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    assert process.returncode == 0
    return output
