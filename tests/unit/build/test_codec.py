"""Translations as JSON: every translation comes back as it was, and other JSON makes nothing but plain records."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import random
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from py2cu.build import codec
from py2cu.diagnostics import Diagnostic, Related, Severity
from py2cu.dtypes import F32, GENERIC, Kind, TypeVariable
from py2cu.ir.abi.parameters import Default, Parameter, Role, TupleParameter
from py2cu.ir.abi.signature import Signature
from py2cu.ir.types import PY_INT, ArrayType, Binary, Constant, Name, PythonType, Width
from py2cu.pipeline import lower_file
from py2cu.source import SourceFile, Span
from py2cu.translation import CallTranslation, TargetName, Text, Translation

EXAMPLES = [Path(__file__).parents[3] / "examples" / f"{name}.py" for name in ("cooperative", "dequantise", "rows")]


@cache
def translated(path: Path) -> tuple[CallTranslation, Translation]:
    lowered = lower_file(SourceFile(path.name, path.read_text(encoding="utf-8")))
    return lowered.for_calls(*TargetName), lowered.files()


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_come_back(path: Path) -> None:
    """`test_kernel_cases.py` has the rest of the language."""
    for translation, other in itertools.permutations(translated(path)):
        data = codec.encode(translation)
        again = codec.decode(data, type(translation))
        assert codec.decode(data, type(other)) is None
        assert again == translation and repr(again) == repr(translation) and codec.encode(again) == data


def with_signature(**fields: Any) -> Translation:
    empty: dict[str, Any] = dict.fromkeys(("parameters", "dims", "indices", "launch", "block"), ())
    empty |= {"name": "k", "op": "k", "doc": None, "size": None, "guards": (), "inits": (), "strided": ()}
    return Translation("k", "k.py", (Signature(**(empty | fields)),), (), {})


def test_what_examples_do_not_show_comes_back() -> None:
    variable = TypeVariable("T", "Float", GENERIC["Float"])
    generic = dataclasses.replace(F32, variable=variable)
    extent = Binary("*", Constant(2, type=PY_INT), Binary("+", Name("n"), Constant(1)))
    parameters = (
        Parameter("x", ArrayType(generic, (extent,), leading="*batch"), Role.FACTORY, Span(1, 2, 3, 4)),
        Parameter("z", PythonType(Kind.COMPLEX), default=Default(1 - 0.0j, "1j")),
        Parameter("b", PythonType(Kind.BOOL), default=Default(True)),
        TupleParameter("t", PythonType(Kind.INT, Width.LONG), numbers=("t0", "t1")),
    )
    signature = {
        "doc": "\ud800 \u2028 ∀", "parameters": parameters, "bounds": (((("n", "m"), 2**64), ((), 1)), ()),
        "inits": (("a", -0.0), ("b", -math.inf), ("c", 3)), "size": (extent,), "has_barrier": True,
    }  # fmt: skip
    file = SourceFile("k.py", "text")
    note = Diagnostic(
        Severity.WARNING, "P301", "m", Span(1, 0, 1, 1), file, related=(Related("r", Span(1, 0, 1, 1), file),)
    )
    translation = dataclasses.replace(
        with_signature(**signature), notes=(note,), obstacles={TargetName.CPU: "why"}, host=Text("h", "t\n", (1, 0))
    )
    again = codec.decode(codec.encode(translation), Translation)
    assert again == translation and repr(again) == repr(translation)
    assert repr(decoded(codec.encode(with_signature(inits=(("a", math.nan),))))).count("nan") == 1


def decoded(data: bytes) -> Translation:
    made = codec.decode(data, Translation)
    assert made is not None
    return made


def test_dtypes_stay_rows_of_the_table() -> None:
    again = decoded(codec.encode(with_signature(parameters=(Parameter("x", ArrayType(F32, ())),))))
    assert again.signatures[0].dtype("x") is F32


def test_a_class_that_is_not_listed_is_a_bug() -> None:
    with pytest.raises(TypeError, match="Path"):
        codec.encode(with_signature(doc=Path("x")))


WRONG: tuple[Any, ...] = (
    None, True, 1, -1.5, "x", [], {}, {"Signature": []}, {"Span": [1, 2, 3, 4, 5]}, {"Path": ["/etc/passwd"]},
    {"complex": ["1", 2]}, [{"Span": []}], {"cuda": [1]}, {"os.system": ["true"]}, {"eval": ["1"]}, 10**30, [[]],
    {"Role": ["no"]}, {"Role": ["New", "a b"]}, {"dict": [1]}, {"dict": [[[], 1]]}, {"Kind": [1], "Role": ["input"]},
    {"DType": ["float33", None]}, {"DType": [["float32"], None]}, {"getattr": ["", "join"]}, {"Signature": {"op": 1}},
)  # fmt: skip
PLAIN = {*codec._CLASSES.values(), tuple, dict, complex, bool, int, float, str, type(None)}


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    for at in range(len(value)) if isinstance(value, list) else value:
        yield value, at
        if isinstance(value[at], list | dict):
            yield from places(value[at])


def classes(value: Any) -> Iterator[type[Any]]:
    yield type(value)
    parts: Any = ()
    if dataclasses.is_dataclass(value):
        parts = [getattr(value, field.name) for field in dataclasses.fields(value)]
    elif isinstance(value, dict):
        parts = value.items()
    elif isinstance(value, tuple):
        parts = value
    for part in parts:
        yield from classes(part)


def test_other_json_makes_nothing_but_plain_records() -> None:
    """Each part of an encoded translation is replaced."""
    random_ = random.Random(1)
    tree = json.loads(codec.encode(translated(EXAMPLES[-1])[0]))
    refused = 0
    for container, at in random_.sample([*places(tree)], 100):
        for wrong in WRONG:
            kept = container[at]
            container[at] = wrong
            made = codec.decode(json.dumps(tree).encode(), CallTranslation)
            container[at] = kept
            refused += made is None
            assert made is None or PLAIN.issuperset(classes(made))
    assert refused > 60 * len(WRONG)


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[" * 100_000, b"[]", b"{}", b'{"Text":["a","b",[]]}', b"\x80\x04K\x01.", b"\xff", b"1" * 9999]
)
def test_other_bytes_are_no_translation(data: bytes) -> None:
    assert codec.decode(data, Translation) is None
