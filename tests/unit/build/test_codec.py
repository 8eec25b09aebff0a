"""Translations as JSON: every translation comes back as it was, and nothing else is accepted."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import random
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from py2cu.build import codec
from py2cu.build.codec import Undecodable
from py2cu.diagnostics import Diagnostic, Related, Severity
from py2cu.dtypes import F32, GENERIC, DType, Kind, TypeVariable
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
        with pytest.raises(Undecodable):
            codec.decode(data, type(other))
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
    assert repr(codec.decode(codec.encode(with_signature(inits=(("a", math.nan),))), Translation)).count("nan") == 1


def test_dtypes_stay_rows_of_the_table() -> None:
    again = codec.decode(codec.encode(with_signature(parameters=(Parameter("x", ArrayType(F32, ())),))), Translation)
    assert again.signatures[0].dtype("x") is F32


def test_a_class_that_is_not_listed_is_a_bug() -> None:
    with pytest.raises(TypeError, match="Path"):
        codec.encode(with_signature(doc=Path("x")))


def test_an_annotation_means_the_same_in_all_listed_classes() -> None:
    """Decoders are kept by the text of annotations."""
    meanings: dict[str, Any] = {}
    for class_ in codec._CLASSES.values():
        for field in dataclasses.fields(class_):
            meaning = eval(str(field.type), dict(vars(sys.modules[class_.__module__])))
            assert meanings.setdefault(str(field.type), meaning) == meaning
    assert len(meanings) > 40


def test_every_listed_class_has_decoders() -> None:
    for name in codec._CLASSES:
        codec._decoders_of(name)


WRONG: tuple[Any, ...] = (
    None, True, 1, -1.5, "x", [], {}, ["Signature"], ["Span", 1, 2, 3, 4], ["Path", "/etc/passwd"], ["complex", 1, 2],
    [["Span"]], {"cuda": 1}, ["os.system", "true"], 10**30, [[]], ["Diagnostic", "error", "P999", "", 1, 2, None, []],
)  # fmt: skip


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    for at in range(len(value)) if isinstance(value, list) else value:
        yield value, at
        if isinstance(value[at], list | dict):
            yield from places(value[at])


def test_any_other_json_is_refused_or_has_the_declared_types() -> None:
    """Each part of an encoded translation is replaced: what still decodes is encoded to just these bytes."""
    random_ = random.Random(1)
    tree = json.loads(codec.encode(translated(EXAMPLES[-1])[0]))
    all_places = [place for place in places(tree) if place[0] is not tree or place[1]]
    refused = 0
    for container, at in random_.sample(all_places, 100):
        kept = container[at]
        container[at] = random_.choice(WRONG)
        data = json.dumps(tree, separators=(",", ":")).encode()
        try:
            assert codec.encode(codec.decode(data, CallTranslation)) == data
        except Undecodable:
            refused += 1
        container[at] = kept
    assert refused > 60


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[" * 100_000, b'["Text","a","b",[]]', b"\x80\x04K\x01.", b"\xff", b"1" * 9999]
)
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(Undecodable):
        codec.decode(data, Translation)


def test_a_dtype_is_known_by_its_name() -> None:
    data = codec.encode(with_signature(parameters=(Parameter("x", ArrayType(F32, ())),)))
    for wrong in (b'"float33"', b'["float32"]', b'["float32",1]', b'[["float32"],null]', b"1"):
        with pytest.raises(Undecodable):
            codec.decode(data.replace(b'"float32"', wrong), Translation)
    assert isinstance(codec.decode(data, Translation).signatures[0].dtype("x"), DType)
