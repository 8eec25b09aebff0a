"""Emitted texts with numbers in the place of the module's constants, for tests of what a name means."""

from __future__ import annotations

import re


def with_numbers(text: str) -> str:
    """`text` with the number of each `constexpr int K = 3;` in the place of `K`; derived ones are computed."""
    numbers: dict[str, object] = {}
    for name, value in re.findall(r"\bconstexpr \w+ (\w+) = (.*?);", text):
        is_number = re.fullmatch(r"-?[\w.]+", value) and value not in numbers
        number = value if is_number else str(eval(value, {}, {key: eval(str(each)) for key, each in numbers.items()}))
        numbers[name] = number
        text = re.sub(rf"static_cast<float>\({name}\)", f"{number}f", text)
        text = re.sub(rf"\b{name}\b", number, text)
    return text
