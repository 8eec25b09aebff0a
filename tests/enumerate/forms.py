"""The expressions of the enumeration, a row each.

A place is named in braces: `{a}` to `{e}` take numbers, `{s}` and `{p}` sequences, `{k}` a test.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Form:
    """One row: a template with places. `is_typed`: it may give an element or a truth value. `acts`: it writes.

    `has_value`: an expression, or a statement that leaves its result in the local `v`.
    """

    template: str
    is_typed: bool = False
    acts: bool = False
    has_value: bool = True

    @property
    def places(self) -> tuple[str, ...]:
        """The names of its places, in order."""
        return tuple(dict.fromkeys(re.findall(r"\{(\w)\}", self.template)))


def _rows(text: str, *, is_truth: bool = False, acts: bool = False) -> tuple[Form, ...]:
    return tuple(
        Form(line, is_truth or re.search(r"\b[wz]\[", line) is not None, acts) for line in text.strip().splitlines()
    )


ARITHMETIC: Final = _rows("""
{a} + {b}
{a} - {b}
{a} * {b}
{a} // {b}
{a} % {b}
{a} & {b}
{a} | {b}
{a} ^ {b}
{a} << {b}
{a} >> {b}
{a} ** {b}
-{a}
~{a}
abs({a})
int({a})
{a} + 3
{a} - 1
{a} >> 33
{a} << 3
{a} & 0xFFFFFFFF
{a} & 0xFFFFFFFFFFFFFFFF
{a} * 0xFF51AFD7ED558CCD & 0xFFFFFFFFFFFFFFFF
{a} ^ {a} >> 7
{a} % 7
{a} // 10
{a} % 7 + 1
{a} ** 2
2 ** ({a} & 7)
1000 // ({a} % 7 + 1)
1000 // (({a} - {b}) % 7 + 1)
({a} + {b}) >> 33
({a} + {b} + {c}) // 3
{a} * {b} & MASK
int(float({a}) / 4)
int(float({a}))
round(float({a}) / 3)
""")
CHOICES: Final = _rows("""
{a} and {b}
{a} or {b}
{a} or 1
({a} or 1) % 3
{a} if {k} else {b}
{a} if {b} > 3 else {c}
max({a}, {b})
min({a}, {b})
max({a}, {b}, 3)
min({a}, 9)
""")
TRUTHS: Final = _rows(
    """
{a} < {b}
{a} >= {b}
{a} == {b}
{a} != {b}
0 < {a} < 6
{a} < {b} < {c}
{a} <= {b} != {c}
not {a}
bool({a})
{a} > 0 and {b} > 0
{a} > 3 or {b} > 3
({a}, {b}) < (i, 3)
(1, {a}) < (i, {b})
({a}, {b}) == ({b}, {a})
({a}, {b}) != (1, 2)
({a}, {b}) in ((0, 1), (1, 0))
{a} in ({b}, 3)
{a} not in (2, {b}, 4)
{s} < {p}
{s} == {p}
{s} in ({p}, (1, 2))
any(q > {a} for q in range(3))
all({a} < q + {b} for q in range(3))
""",
    is_truth=True,
)
CALLS: Final = _rows("""
math.gcd({a}, {b})
math.lcm({a}, 6)
math.isqrt({a})
int(math.dist((float({a}), float({b})), (1, 2)))
int({a}).bit_count()
second({a}, {b})
second(b={a}, a={b})
second({a}, b={b})
first({a}, {s})
first(a={a}, s={s})
first(s={s}, a={a})
late({a})
late({a}, {b})
late(b={a}, a={b})
last({s})
mix({a})
mix(mix({a})) >> 1
same({a}) - same({b})
pick({a}, {b}, {k})
down({a}, {b}, 3)
folded({a}, {b})
order({a}, {b})[0]
swap({a}, {b})[1:][0]
1 + ({a} < {b})
1 + (0 < {a} < 6)
""")
ACTING_CALLS: Final = _rows(
    """
put(y, i, 1, {a})
put(y, i, {a} % 3, {b})
pair(y, i, {a})[0]
pair(y, i, {a})[1]
(u := {a})
u + (u := {a})
(u := {a}) + u
second(b=u, a=(u := {a}))
""",
    acts=True,
)
ITEMS: Final = _rows("""
({a}, {b})[0]
({a}, {b})[1]
({a}, {b}, 5)[1:][0]
({a}, {b}, 5)[:2][-1]
(({a}, {b}) if {k} else ({b}, {a}))[0]
{s}[0]
{s}[-1]
{s}[1:][0]
len({s})
w[{a} % 8]
z[i, {a} % 4]
w[{a} % 4:][0]
w[:{a} % 4 + 1][-1]
w[{a} % 3:{b} % 3 + 3][-1]
w[2:5][{a} % 3]
w[1:][:3][-2]
""")
REDUCTIONS: Final = _rows("""
sum({s})
max({s})
min({s})
sum({s}, {a})
sum(({a}, {b}))
sum(({a}, {b}), {c})
max(({a}, {b}))
sum({a} * q for q in range(3))
sum(q for q in range({a}))
sum(q for q in range({a}, {b}))
sum(q + {b} for q in range(0, 6, {a}))
sum((q for q in range(3)), {a})
sum(q for q in {s})
sum(q + {a} for q in {s})
sum(q for q in range(4) if q > {a})
sum(q * r for q, r in zip({s}, {p}))
sum(q * r for q, r in enumerate({s}))
sum(w[:{a} % 4])
sum(w[{a} % 4:])
max(q + {a} for q in range(3))
max((q for q in range({a})), default={b})
min((q for q in {s} if q > 2), default={a})
sum(r for q in range(2) for r in ({a}, q))
sum(({a} + q) & MASK for q in range(3)) & MASK
""")
EXPRESSIONS: Final = (*ARITHMETIC, *CHOICES, *TRUTHS, *CALLS, *ACTING_CALLS, *ITEMS, *REDUCTIONS)

DISPLAYS: Final = (
    *_rows("""
({a}, {b})
[{a}, {b}]
({a}, {b}) if {k} else ({b}, {a})
({a}, {b}) if {c} > 3 else (1, 2)
tuple(q + {a} for q in range(2))
[q + {a} for q in range(2)]
swap({a}, {b})
{s}[1:]
{s}[:2]
tuple({s})
w[{a} % 4:]
w[:{a} % 4 + 1]
"""),
    *_rows("pair(y, i, {a})", acts=True),
)
"""What gives a sequence."""
