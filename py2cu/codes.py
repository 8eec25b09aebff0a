"""Every diagnostic code: its title and kind, and the page that `py2cu explain CODE` shows.

Areas: P1xx syntax outside the language, P2xx names, P3xx types, P4xx memory and guards, P5xx barriers, P6xx build,
P7xx performance, P8xx host functions. The pages are `explanations/CODE.md`: what the code means, then a wrong and a
right example.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Final


class Kind(enum.Enum):
    """An error ends the translation; a warning and a note do not."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Code:
    """The title of a code, and whether it is an error, a warning or a note."""

    title: str
    kind: Kind = Kind.ERROR

    @property
    def heading(self) -> str:
        """The title, marked for a warning and for a note."""
        return self.title if self.kind is Kind.ERROR else f"{self.title} (a {self.kind.value})"


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a code means: `wrong` is a file that causes it, `right` the corrected file; a test translates both.

    Both are empty for a code that no example can show.
    """

    meaning: str
    wrong: str = ""
    right: str = ""


def explanation(code: str) -> Explanation:
    """Read the page of a code.

    Raises:
        FileNotFoundError: there is no such code.
    """
    import importlib.resources  # takes milliseconds, and only `explain` reads pages

    page = importlib.resources.files("py2cu").joinpath("explanations", f"{code}.md").read_text(encoding="utf-8")
    meaning, *examples = page.split("\n## ")
    texts = [example.partition("```python\n")[2].rpartition("```")[0] for example in examples]
    return Explanation(" ".join(meaning.split()), *texts)


CODES: Final[dict[str, Code]] = {
    # Syntax outside the language.
    "P100": Code("the file cannot be read"),
    "P101": Code("not valid Python"),
    "P102": Code("nested too deeply"),
    "P103": Code("syntax that kernels do not support"),
    "P104": Code("a loop that is not over `range`"),
    "P105": Code("a call that kernels cannot make"),
    "P106": Code("invalid parameters or return of a kernel"),
    "P107": Code("no kernel of this name, or several"),
    "P108": Code("a kernel that cannot be a torch operator"),
    # Names.
    "P201": Code("unknown name"),
    "P202": Code("a name that is not a number"),
    "P203": Code("assignment to a parameter that is not a number"),
    "P204": Code("a local that may be unassigned"),
    "P205": Code("a name whose value depends on running the file"),
    # Types.
    "P301": Code("an annotation that is not a type"),
    "P302": Code("an element type that is not supported yet"),
    "P303": Code("an array where a number is expected"),
    "P304": Code("a dimension that no call determines"),
    "P305": Code("a constant that does not fit"),
    "P306": Code("a local of two types"),
    "P307": Code("the wrong kind of number"),
    "P308": Code("division by zero"),
    "P309": Code("no common type"),
    "P310": Code("not a template argument"),
    "P311": Code("a template without instances", Kind.NOTE),
    "P312": Code("a tuple where a number is expected, or of the wrong length"),
    "P313": Code("narrow integers that may wrap around", Kind.WARNING),
    "P314": Code("arithmetic that Numba computes in a wider type", Kind.NOTE),
    # Memory and guards.
    "P401": Code("an array indexed the wrong way"),
    "P402": Code("a kernel that does not depend on its thread"),
    "P403": Code("an invalid option of the decorator"),
    "P404": Code("an index outside the array"),
    "P405": Code("a guard that would come too late"),
    "P406": Code("a guard was added", Kind.NOTE),
    "P407": Code("a kernel without effect"),
    "P408": Code("an invalid local or shared array"),
    "P409": Code("an order of evaluation that C++ does not specify"),
    "P410": Code("an invalid view in rows"),
    "P411": Code("an array or a number that may be None, or never is"),
    "P412": Code("a backward that does not fit its kernel"),
    "P413": Code("a float whose gradients cannot be checked"),
    "P414": Code("an index that may be negative", Kind.NOTE),
    # Barriers, atomics and waiting loops.
    "P501": Code("a barrier that not all threads reach"),
    "P502": Code("an atomic operation that may not happen"),
    "P503": Code("a loop that cannot end"),
    # Build.
    "P601": Code("a compiler refused the text"),
    # Performance.
    "P701": Code("arithmetic in double", Kind.NOTE),
    "P702": Code("an index of 64 bits in a loop", Kind.NOTE),
    "P703": Code("a division in a loop", Kind.NOTE),
    "P704": Code("an order of indices that does not coalesce", Kind.NOTE),
    "P705": Code("a power that a few operations compute", Kind.NOTE),
    "P706": Code("how many elements a thread computes", Kind.NOTE),
    "P707": Code("a sum that each addition rounds to a half", Kind.NOTE),
    "P708": Code("a dtype for which a generic kernel has no instance", Kind.NOTE),
    # Host functions.
    "P801": Code("syntax that host functions do not support"),
    "P802": Code("a call, or a value, that host functions cannot use"),
}
