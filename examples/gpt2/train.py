"""Train GPT-2 on bytes of text, by kernels and by torch alone, which start from the same numbers and see the same text.

    python examples/gpt2/train.py
    python examples/gpt2/train.py --size 124M --dtype bfloat16 --compile
    torchrun --nproc-per-node 2 examples/gpt2/train.py

The text is the source of Python's own library. Without `--torch` the kernels train first, then torch; with it torch
trains alone. Under torchrun each process has its own part of each batch.
"""

from __future__ import annotations

import argparse
import os
import sys
import sysconfig
import time
from collections.abc import Iterator
from pathlib import Path

import torch
import torch.distributed as dist
from model import GPT2, SIZES, KernelAdamW, Kernels, Size, Torch, TorchAdamW, buckets
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from torch import Tensor, nn

RANK, PROCESSES = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))  # torchrun sets them
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
GREATEST_TEXT = 1 << 24  # bytes that are read


def read_text(folder: Path) -> Tensor:
    """The bytes of all Python sources directly in the folder."""
    text = b""
    for path in sorted(folder.glob("*.py")):
        text += path.read_bytes()
        if len(text) > GREATEST_TEXT:
            break
    return torch.tensor(list(text), dtype=torch.int64)


def batches(text: Tensor, steps: int, batch: int, length: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Tokens and the token behind each, of each batch the part that is this process's."""
    generator = torch.Generator().manual_seed(0)
    for _ in range(steps):
        starts = torch.randint(len(text) - length, (batch * PROCESSES,), generator=generator)[RANK::PROCESSES]
        windows = torch.stack([text[start : start + length + 1] for start in starts])
        yield windows[:, :-1].contiguous(), windows[:, 1:].contiguous()


def train(
    size: Size, text: Tensor, *, by_kernels: bool, dtype: torch.dtype, device: str, steps: int, batch: int, length: int,
    lr: float, compiled: bool = False, bar: bool = False,
) -> list[float]:  # fmt: skip
    """The losses of all steps, those of this process."""
    torch.manual_seed(0)
    model = GPT2(size, Kernels if by_kernels else Torch, dtype).to(device)
    optimiser = (KernelAdamW if by_kernels else TorchAdamW)(model, lr)
    loss_of: nn.Module = torch.compile(model, fullgraph=True) if compiled else model  # type: ignore[assignment]
    if PROCESSES > 1:
        loss_of = nn.parallel.DistributedDataParallel(loss_of)
    name = "kernels" if by_kernels else "torch"
    columns = TextColumn(f"{name:<8}"), BarColumn(), TextColumn("{task.fields[said]}"), TimeRemainingColumn()
    losses = []
    with Progress(*columns, disable=not bar) as progress:
        task = progress.add_task(name, total=steps, said="")
        start = time.perf_counter()
        for step, (tokens, targets) in enumerate(batches(text, steps, batch, length), 1):
            order, ends = buckets(tokens)
            loss = loss_of(*(each.to(device) for each in (tokens, targets, order, ends)))
            loss.backward()
            optimiser.step()
            losses.append(loss.detach())
            if step % 10 == 0 or step == steps:
                speed = step * tokens.numel() * PROCESSES / (time.perf_counter() - start)
                said = f"loss {losses[-1].item():.4f}  {speed:,.0f} tokens/s"
                progress.update(task, completed=step, said=said)
    return [loss.item() for loss in losses]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--size", default="tiny", choices=SIZES)
    parser.add_argument("--dtype", default="float32", choices=DTYPES)
    parser.add_argument("--compile", action="store_true", help="run the model under torch.compile")
    parser.add_argument("--torch", action="store_true", help="train by torch alone")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--batch", type=int, default=8, help="sequences of a step and process")
    parser.add_argument("--length", type=int, help="tokens of a sequence, as many as the model has positions")
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--text", type=Path, default=Path(sysconfig.get_path("stdlib")), metavar="FOLDER")
    options = parser.parse_args()
    positions = SIZES[options.size].positions
    options.length = positions if options.length is None else options.length
    if options.length > positions:
        parser.error(f"--length {options.length}: the model has {positions} positions")
    for name in ("steps", "batch", "length"):
        if getattr(options, name) < 1:
            parser.error(f"--{name} must be at least 1")
    options.text_folder, options.text = options.text, read_text(options.text)
    if len(options.text) <= options.length:
        found = f"the Python sources in {options.text_folder} have {len(options.text)} bytes"
        parser.error(f"--text: {found}, and a sequence takes {options.length + 1}")
    return options


def main() -> None:
    options = arguments()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if PROCESSES > 1:
        if device == "cuda":
            torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        dist.init_process_group("nccl" if device == "cuda" else "gloo")
    size = SIZES[options.size]
    results = {}
    for by_kernels in (False,) if options.torch else (True, False):
        losses = train(
            size, options.text, by_kernels=by_kernels, dtype=DTYPES[options.dtype], device=device, steps=options.steps,
            batch=options.batch, length=options.length, lr=options.lr, compiled=options.compile,
            bar=RANK == 0 and sys.stderr.isatty(),
        )  # fmt: skip
        results["kernels" if by_kernels else "torch"] = losses
    if RANK == 0:
        print(
            f"{size.parameters:,} parameters, {options.dtype}, {options.steps} steps on {device}: first and last loss"
        )
        for name, losses in results.items():
            print(f"{name:<8} {losses[0]:.4f} {losses[-1]:.4f}")
    if PROCESSES > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
