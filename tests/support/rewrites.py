"""The rewrite of an error case: what its hints say to write, as a patch in the order of the file.

-    out[i] = 2 * x        a line of the case, left out
+    out[i] = 2 * x[i]     a new line
 @kernel                   a line of the case, kept: the lines below are found behind it
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_REMOVES: Final = ("leave", "remove")  # hints about what to remove begin with these words


@dataclass(frozen=True)
class Rewrite:
    """The lines of a patch, each with `-`, `+` or a blank before it."""

    lines: tuple[str, ...]

    @staticmethod
    def of(patch: str) -> Rewrite:
        return Rewrite(tuple(line for line in patch.splitlines() if line.strip()))

    def applied(self, python: str) -> str:
        """The text of the corrected file.

        Raises:
            ValueError: a line of the patch is not in `python`, or stands before the lines above it.
        """
        rest, done = python.splitlines(), list[str]()
        for line in self.lines:
            sign, text = line[0], line[1:]
            if sign not in "-+ ":
                raise ValueError(f"a line of a rewrite begins with `-`, `+` or a blank: {line}")
            if sign == "+":
                done.append(text)
                continue
            if text not in rest:
                raise ValueError(f"the case has no such line behind those above it: {text}")
            at = rest.index(text)
            done += rest[:at] if sign == "-" else rest[: at + 1]
            del rest[: at + 1]
        return "\n".join([*done, *rest]) + "\n"

    def follows(self, hint: str) -> bool:
        """True if the changed lines have a text that `hint` quotes, or if it quotes none; `…` stands for any text."""
        sign = "-" if hint.startswith(_REMOVES) else "+"
        changed = "\n".join(" ".join(line[1:].split()) for line in self.lines if line[0] == sign)
        quoted = [text for text in re.findall(r"`([^`]+)`", hint) if not text.startswith("py2cu ")]  # commands
        return not quoted or any(re.search(_pattern(text), changed) for text in quoted)


def _pattern(quoted: str) -> str:
    return ".+".join(re.escape(" ".join(part.split())) for part in quoted.split("…"))
