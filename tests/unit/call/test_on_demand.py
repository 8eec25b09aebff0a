"""Texts are rendered when they are read: those of calls for one target, the files, and what names the operator."""

from typing import Any

import pytest

pytest.importorskip("torch")

from jaxtyping import Float32
from torch import Tensor

from py2cu import Index, kernel
from py2cu.build import cache
from py2cu.kernels import Kernel
from py2cu.options import KernelOptions
from py2cu.pipeline import lower_function
from py2cu.source import SourceFile
from py2cu.targets.lowered import Lowered
from py2cu.translation import CallTranslation, TargetName

CUDA, CPU = TargetName.CUDA, TargetName.CPU
TEXT = """
@kernel
def f(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"], s: float = 2.0):
    out[i] = s * x[i]
"""


@kernel
def doubled(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
    out[i] = 2.0 * x[i]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What is rendered, in order; nothing is cached."""
    found: list[object] = []
    files, for_calls = Lowered.files, Lowered.for_calls
    monkeypatch.setattr(Lowered, "files", lambda self: (found.append("files"), files(self))[1])
    monkeypatch.setattr(Lowered, "for_calls", lambda self, *at: (found.append(at), for_calls(self, *at))[1])
    monkeypatch.setattr(cache, "get_translation", lambda key, class_: None)
    return found


def test_only_what_is_read_is_rendered(asked: list[object]) -> None:
    k = Kernel(doubled.python)
    instances = k._prepare().instances
    assert asked == [()]
    assert instances.translation(CPU).texts.keys() == {CPU}
    instances.translation(CPU)
    assert asked == [(), (CPU,)]
    assert instances.digest == instances.digest and instances.translation().texts.keys() == {CPU, CUDA}
    assert asked == [(), (CPU,), (CUDA,)]
    assert k.cuda_source and k.cpp_source and k.header
    assert asked == [(), (CPU,), (CUDA,), "files"]


def test_a_kernel_is_lowered_once_for_all_of_its_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    lowered = []
    monkeypatch.setattr("py2cu.pipeline.lower_function", lambda *args: (lowered.append(args), lower_function(*args))[1])
    monkeypatch.setattr(cache, "get_translation", lambda key, class_: None)
    k = Kernel(doubled.python)
    assert k.cuda_source and k._prepare().instances.digest and k._prepare().instances.translation(CPU)
    assert len(lowered) == 1


def test_an_entry_gains_the_text_of_each_target() -> None:
    for target in (CPU, CUDA):
        Kernel(doubled.python)._prepare().instances.translation(target)
    k = Kernel(doubled.python)
    entry = cache.get_translation(k._current_translator()._key_of({}), CallTranslation)
    assert entry is not None and entry.texts.keys() == {CPU, CUDA}
    assert entry == k._prepare().instances.translation()


def digest(text: str, line: int = 2, name: str = "f.py", **options: Any) -> str:
    head = "from jaxtyping import Float32\nfrom torch import Tensor\nfrom py2cu import Index, kernel"
    lowered = lower_function(SourceFile(name, head + text), line + 2, "f", KernelOptions.of(**options), {})
    return lowered.for_calls(CUDA).digest


def test_the_digest_is_of_what_the_kernel_does() -> None:
    known = digest(TEXT)
    assert digest(TEXT, name="other.py") == digest("\n\n" + TEXT, line=4) == known
    assert digest(TEXT.replace("s * x[i]", "s *  x[i]")) == known
    edits = [("s * x", "x"), ("= 2.0", "= 3.0"), (" s", " t")]
    options: list[dict[str, Any]] = [{"strided": True}, {"block": 64}, {"init": {"out": 1}}]
    others = [*(digest(TEXT.replace(*edit)) for edit in edits), *(digest(TEXT, **each) for each in options)]
    assert len({known, *others}) == 7
