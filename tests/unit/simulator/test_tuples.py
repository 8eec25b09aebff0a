"""Tuples in a simulated kernel, whose parts the translator may leave out."""

import warnings

import pytest

torch = pytest.importorskip("torch")

from jaxtyping import Float32  # noqa: E402
from torch import Tensor  # noqa: E402

from py2cu import Index, kernel  # noqa: E402


@kernel
def last_of_unread(i: Index["n"], x: Float32[Tensor, "n 3"], out: Float32[Tensor, "n"]):
    unread = (1 if x[i, -1] else i), 5  # noqa: F841
    first, *rest = (2 if x[i, -2] else i), 5  # noqa: F841
    out[i] = rest[0]


def test_an_index_from_the_end_in_a_tuple_that_nothing_reads() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert last_of_unread.simulate(torch.ones(2, 3)).tolist() == [5, 5]
