"""Find the name that a misspelt one most likely means, for hints.

In: a word and the known names. Out: the nearest name, or a hint that suggests it.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The name in `known` most similar to `word`, if any is similar; the first or the last letter must be equal."""

    def is_candidate(name: str) -> bool:
        shares_an_end = name[:1].lower() == word[:1].lower() or name[-1:].lower() == word[-1:].lower()
        return shares_an_end and name != word and abs(len(name) - len(word)) <= 3

    candidates = [name for name in dict.fromkeys(known) if is_candidate(name)]
    return next(iter(difflib.get_close_matches(word, candidates, 1, 0.65)), None)


def did_you_mean(word: str, known: Iterable[str], otherwise: str) -> str:
    """A hint: the nearest name, or `otherwise` if none is near."""
    near = nearest(word, known)
    return f"did you mean `{near}`?" if near else otherwise
