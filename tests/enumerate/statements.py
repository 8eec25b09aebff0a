"""The statements of the enumeration, a row each: the positions in which an expression stands.

Rows are divided by blank lines. A row that leaves its result in `v` is observed there, as halves; every row is observed
by the whole of `y`.
"""

from __future__ import annotations

import re
from typing import Final

from tests.enumerate.forms import Form


def _rows(text: str) -> tuple[Form, ...]:
    return tuple(
        Form(row, "w[" in row, acts="y[i" in row or "(y, i" in row, has_value=bool(re.search(r"\bv\b", row)))
        for row in text.strip("\n").split("\n\n")
    )


STORES: Final = _rows("""
y[i, 3] = {a}

y[i, {a} % 3] = {b}

y[i, ({a} or 1) % 3] = bump(y, i)

y[i, 1 + (0 < {a} < 6)] = {b}

y[i, {a} % 3] += {b}

y[i, 1] += {a}

y[i, 1] -= {a}

y[i, 1], y[i, 2] = {a}, {b}

y[i, 0], y[i, 1] = y[i, 1], {a}

y[i, 1], v = {a}, {b}

v = y[i, 1] = {a}

y[i, 1:3] = {a}, {b}

y[i, 1:3] = {a}

y[i, 1:3] = {s}

y[i, 4:][-1] = {a}

y[i, :3][-1] += {a}

y[i, 1:][{a} % 2] = {b}

r = y[i, 1:3]
r[-1] = {a}
r[0] = {b}

put(y, i, 2, {a})
""")
LOCALS: Final = _rows("""
u += {a}
v = u

u -= {a}
v = u

u *= {a}
v = u

u ^= {a}
v = u

v = {a}
v += {b}

v, r = {a}, {b}
v = v ^ r

v, r = {s}
v = v - r

u, v = {a}, u

v = u = {a}

v, *r = {s}

v, r = divmod({a}, {b})

r = {a}

r, q = {a}, {b}

r = {s}

r = {s}[0]

r = {a}
r = {b}
v = r
""")
TESTS: Final = _rows("""
if {a}:
    v = 1
else:
    v = 2

if {a} > {b}:
    v = 1
else:
    v = 2

if {a} > 3 and {b} > 3:
    v = 1
else:
    v = 2

if {k} and {a}:
    y[i, 3] = 1

v = 0
if {a} < 3:
    v = 1
elif {b} < 3:
    v = 2

y[i, 3] = 1
if {a} > 5:
    return
y[i, 3] = 2

v = 0
while v < {a} % 5:
    v += 1

v = 0
while (v := v + 1) < {a} % 5:
    pass

v = 0
while v < 3 and {a}:
    v += 1

assert {a} != 123456
v = 1
""")
LOOPS: Final = _rows("""
v = 0
for q in range({a}):
    v += 1

v = 0
for q in range({a} % 5):
    v += q

v = 0
for q in range({a}, 5):
    v += 1

v = 0
for q in range(0, 6, {a}):
    v += 1

v = 0
for q in range({a}, {b}):
    v += 1

v = 0
for q in range({a}):
    v += 1
    if v > 3:
        break

for q in range({a} % 4):
    y[i, 1] += 1

v = 0
for r in ({a}, {b}):
    v = v * 10 + r

v = 0
for r in {s}:
    v += r

v = 0
for q, r in enumerate({s}):
    v += q * r

v = 0
for q, r in zip({s}, {p}):
    v += q * r

v = 0
for r in w[{a} % 4:]:
    v += r

v = 0
for q in range(3):
    v += {a}

v = 9
for q in range({a}):
    v = q
    if q > 2:
        break
else:
    v = {b}
""")
LISTS: Final = _rows("""
r = [0, 0, 0]
r[{a} % 3] = {b}
v = r[1]

r = [1, 2, 3]
r[-1] += {a}
v = r[2]

r = [{a}, {b}]
r[0], r[1] = r[1], r[0]
v = r[0]

r = [{a}] * 2
r[1] = {b}
v = r[0] ^ r[1]

r = [q * {a} for q in range(3)]
v = r[-1]

r = local(4, "int64")
r[0], r[1], r[2], r[3] = 1, 2, 3, 4
r[{a} % 4] = {b}
v = int(r[:3][-1])

r = local(3, "int64")
r[0], r[1], r[2] = {a}, {b}, 5
v = int(r[1:][-2])
""")
FUNCTIONS: Final = _rows("""
def inner(k):
    return k ^ {a}
v = inner({b})

inner = lambda k: k ^ {a}
v = inner({b})

def inner(k, d={a}):
    return k * 2 + d
v = inner({b})

def inner(k):
    y[i, 0] = y[i, 0] * 3 + 1
    return k
v = inner({a}) + {b}
""")
STATEMENTS: Final = (*STORES, *LOCALS, *TESTS, *LOOPS, *LISTS, *FUNCTIONS)
