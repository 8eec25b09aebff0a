"""The name that a misspelt one most likely means, for hints."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The one of `known` most like `word`, if any is like it. The first or the last letter is taken to be right."""

    def is_candidate(name: str) -> bool:
        shares_an_end = name[:1].lower() == word[:1].lower() or name[-1:].lower() == word[-1:].lower()
        return shares_an_end and name != word and abs(len(name) - len(word)) <= 3

    alike = [name for name in dict.fromkeys(known) if is_candidate(name)]
    return next(iter(difflib.get_close_matches(word, alike, 1, 0.65)), None)


def did_you_mean(word: str, known: Iterable[str], otherwise: str) -> str:
    """A hint: the nearest name, or what to do where there is none."""
    near = nearest(word, known)
    return f"did you mean `{near}`?" if near else otherwise
