"""Emitted texts with numbers in the place of the module's constants, for tests of what a name means."""

from __future__ import annotations

import re


def with_numbers(text: str) -> str:
    """`text` with the number of each `constexpr int K = 3;` in the place of `K`; derived ones in parentheses."""
    for name, value in re.findall(r"^constexpr \w+ (\w+) = (.*);$", text, flags=re.MULTILINE)[::-1]:
        number = value if re.fullmatch(r"[\w.]+", value) else f"({value})"
        text = re.sub(rf"static_cast<float>\({name}\)", f"{number}f", text)
        text = re.sub(rf"\b{name}\b", number, text)
    return text
