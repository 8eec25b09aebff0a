"""`python -m benchmarks.sass`: how many machine instructions the kernels of the examples take, beside those written by
hand in `by_hand.cu`. Needs nvcc and cuobjdump, no GPU. `--save` writes the table to benchmarks/results.
"""

from __future__ import annotations

import argparse
import datetime
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from benchmarks.table import Row, render
from py2cu.build.toolchain import find_nvcc
from py2cu.pipeline import translate_file
from py2cu.source import SourceFile
from py2cu.translation import TargetName

HERE = Path(__file__).parent
LIMIT = 1.05
UNTYPED = "numba_kernels.py"  # its kernels have no types before a call


def rows(architecture: str) -> list[Row]:
    by_hand = counts(HERE / "by_hand.cu", architecture)
    found = []
    for path in sorted({*HERE.parent.glob("examples/*.py")} - {HERE.parent / "examples" / UNTYPED}):
        text = translate_file(SourceFile(path.name, path.read_text(encoding="utf-8")), targets=[TargetName.CUDA])
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder) / f"{path.stem}.cu"
            source.write_text(text.cuda.kernel.text, encoding="utf-8")
            (Path(folder) / f"{path.stem}.h").write_text(text.cuda.header.text, encoding="utf-8")
            emitted = counts(source, architecture)
        for signature in text.signatures:
            name = f"{signature.op}_kernel"
            if signature.has_barrier or not {name} <= emitted.keys() & by_hand.keys():
                continue  # kernels with barriers or packs are timed instead: `blocks.py`, `bandwidth.py`
            ratio = emitted[name] / by_hand[name]
            found.append(
                Row(signature.name, f"{emitted[name]}", f"{by_hand[name]}", ratio, f"≤ {LIMIT}", ratio <= LIMIT)
            )
    return found


def counts(source: Path, architecture: str) -> Mapping[str, int]:
    """Instructions of every kernel in `source` without packs, by name; of the 32-bit instance where there are two."""
    nvcc = find_nvcc()
    tool = shutil.which("cuobjdump") or str(Path(nvcc).parent / "cuobjdump")
    with tempfile.TemporaryDirectory() as folder:
        cubin = Path(folder) / "kernels.cubin"
        subprocess.run([str(nvcc), "-O3", "-cubin", f"-arch={architecture}", source, "-o", cubin], check=True)
        listing = subprocess.run([tool, "-sass", cubin], check=True, capture_output=True, text=True).stdout
    found: dict[str, int] = {}
    for function in re.split(r"^\s*Function : ", listing, flags=re.MULTILINE)[1:]:
        name, arguments = demangled(function.split(maxsplit=1)[0])
        if not re.match(r"IlE|ILi\d+ELi\d+E", arguments):  # 64-bit indices; width and count of packs
            found[name] = instructions(function)
    return found


def demangled(symbol: str) -> tuple[str, str]:
    """The name of a function without its namespaces, and what stands behind it in the symbol."""
    rest, name = re.sub("^_ZN?", "", symbol), ""
    while (length := re.match(r"\d+", rest)) is not None:
        name, rest = rest[length.end() :][: int(length[0])], rest[length.end() + int(length[0]) :]
    assert name, symbol
    return name, rest


def instructions(listing: str) -> int:
    """The instructions of one function, without the padding behind its last one: a branch to itself, and NOPs."""
    operations = re.findall(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+ )?([A-Z][\w.]*)", listing)
    while operations and operations[-1].split(".")[0] in ("NOP", "BRA"):
        operations.pop()
    return len(operations)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sass", description=__doc__)
    parser.add_argument("--arch", default="sm_90", help="compiled for it (default: sm_90)")
    parser.add_argument("--save", action="store_true", help="also write the table to benchmarks/results")
    options = parser.parse_args()

    version = subprocess.run([str(find_nvcc()), "--version"], check=True, capture_output=True, text=True).stdout
    release = re.search(r"release ([\d.]+)", version)
    head = f"{datetime.date.today()}: SASS instructions for {options.arch}, nvcc {release and release[1]}"
    text = f"{head}\n\n{render(rows(options.arch))}\n"
    print(text)
    if options.save:
        (HERE / "results" / f"{datetime.date.today()}-sass-{options.arch}.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
