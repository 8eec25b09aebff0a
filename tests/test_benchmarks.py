"""The benchmarks' command: which rows it measures, and what it writes."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]


def run(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> None:
    from benchmarks.__main__ import main

    monkeypatch.setattr(sys, "argv", ["benchmarks", *map(str, arguments)])
    main()


def rows_of(monkeypatch: pytest.MonkeyPatch, file: Path, *arguments: object) -> list[dict[str, Any]]:
    """The rows that the command writes to a file, which have their times."""
    run(monkeypatch, "latency", *arguments, "--rounds", 2, "--json", file)
    rows: list[dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))["rows"]
    for row in rows:
        for times in (row, row["peer"]):
            assert 0 < times["least"] <= times["median"] <= times["greatest"] and times["rounds"] == 2
        assert row["ratio"] > 0 and row["target_seconds"] is None
    return rows


@pytest.mark.builds
def test_latency_writes_each_row_with_its_times_and_its_target(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch")
    name = "recorded call, 16 floats, cpu"
    (row,) = rows_of(monkeypatch, tmp_path / "rows.json", "--only", name)
    assert row["name"] == name and row["peer"]["name"] == "autograd.Function"
    assert row["target_ratio"] == 1.25 and row["met"] is (row["ratio"] <= 1.25)
    assert f"| {name} | {row['median'] * 1e6:.1f} us" in capsys.readouterr().out


@pytest.mark.builds
@pytest.mark.slow
def test_latency_measures_calls_of_another_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    name = "call k(a, b, o), 16 floats, cpu"
    first, second = rows_of(monkeypatch, tmp_path / "rows.json", "--only", name, "--beside", ROOT)
    assert [row["peer"]["name"] for row in (first, second)] == ["torch.add(out=)", f"k(a, b, o) of {ROOT}"]
    assert first["target_ratio"] is None and first["met"] is None
    assert second["target_ratio"] == 1.1 and second["met"] is (second["ratio"] <= 1.1)


@pytest.mark.builds
@pytest.mark.proof
@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_every_operation_of_gpt2_passes_its_check(dtype: str) -> None:
    pytest.importorskip("torch")
    from benchmarks import gpt2

    sizes = gpt2.Sizes(batch=2, length=72, width=64, heads=2, vocabulary=100, padded=128, parameters=1000)
    names = []
    for operation in gpt2.operations(sizes, gpt2.DTYPES[dtype], "cpu"):
        gpt2.check(operation, gpt2.DTYPES[dtype])
        names.append(operation.name)
    assert len(names) == len(set(names)) == 14


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["lltm", "--rounds", 2], "--rounds is an option of latency"),
        (["latency", "--rounds", 0], "--rounds must be at least 1"),
        (["latency", "--beside", "/"], "--beside: / holds no py2cu"),
        (["latency", "--only", "edited", "--only", "16 floats"], "no row's name contains edited and 16 floats"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    arguments: list[Any], message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch")
    with pytest.raises(SystemExit) as refused:
        run(monkeypatch, *arguments)
    assert message in f"{refused.value}{capsys.readouterr().err}"
