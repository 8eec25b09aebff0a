"""Which lines of a launcher are run again for arrays of the same extents."""

import pytest

pytest.importorskip("torch")

from py2cu.call.launchers.likeness import settle


@pytest.mark.parametrize(
    ("lines", "others"),
    [
        (["s, = shape_x", "n = s * 4", "if n > 8: raise misfit"], []),
        (["e = p + 1", "n = e * 2"], ["e = p + 1", "n = e * 2"]),
        (["if v is None: v = 1", "d = v"], ["if v is None: v = 1", "d = v"]),
        (["r = 0", "if v: r = 1", "t = r"], ["if v: r = 1", "t = r"]),
        (["if v: r = 1", "r = 2"], ["if v: r = 1", "r = 2"]),
        (["r = 1", "y = v + r", "r = 2"], ["y = v + r", "r = 2"]),
        (["s, = shape_x", "if s <= 0: return out", "n = s + 1"], ["if s <= 0: return out"]),
        (["s, = shape_x", "if s <= 0: return out", "if s > 9: raise misfit"], None),
        (["s, = shape_x", "if s <= 0: return out", "k = load(s)"], None),
        (["s, = shape_x", "k = load(s)", "if s <= 0: return out"], ["if s <= 0: return out"]),
    ],
    ids=[
        "extents",
        "addresses",
        "numbers",
        "redefined",
        "defined later",
        "defined after it is read",
        "returns",
        "raises behind a return",
        "calls behind a return",
        "calls before a return",
    ],
)
def test_what_depends_on_nothing_else_is_settled(lines: list[str], others: list[str] | None) -> None:
    expected = lines[1:] if others is None else others
    settled, _, rest = settle(lines, known=["shape_x"], taken=["v", "p"])
    assert rest == expected
    assert settled == [line for line in lines if line not in expected]
