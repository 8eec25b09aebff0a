"""The joins of the enumeration, a row each: a local whose value comes over several paths, and who sees it.

Rows are divided by blank lines. A join leaves its result in `v`; `{a}` and `{b}` are what meets, `{k}` is a test.
"""

from __future__ import annotations

from typing import Final

from tests.enumerate.forms import Form


def _rows(text: str) -> tuple[Form, ...]:
    return tuple(Form(row) for row in text.strip("\n").split("\n\n"))


JOINS: Final = _rows("""
if {k}:
    v = {a}
else:
    v = {b}

v = {a}
if {k}:
    v = {b}

v = {b}
if {k}:
    pass
elif i > 2:
    v = {a}

v = {a} if {k} else {b}

v = {a} or {b}

v = {a} and {b}

v = {a}
for q in range(i - 99):
    v = {b}

v = {a}
for q in range(i):
    v = {b}

v = {a}
while v < 0:
    v = {b}

v = {a}
q = 0
while q < i:
    v = {b}
    q += 1

for q in range(i):
    if q > 2:
        v = {a}
        break
else:
    v = {b}

q = 0
while q < 2:
    q += 1
else:
    v = {a}
if {k}:
    v = {b}

v = pick({a}, {b}, {k})

v = same({a})
r = same({b})
if {k}:
    v = r

v = down({a}, {b}, i % 3)

v, r = {a}, {b}
if {k}:
    v, r = r, v

r = ({a}, {b}) if {k} else ({b}, {a})
v = r[0]

r = [{a}, {b}]
v = r[i % 2]

r = [{a}] * 2
r[1] = {b}
v = r[i & 1]

v = max({a}, {b})

v = min({a}, {b})

v = sum(({a}, {b}))

v = {a}
for q in range(3):
    v = (v + {b}) & MASK

v = {a}
for q in range(i):
    v += {b}

v = {a}
for q in range(3):
    v = (v ^ (v >> 33)) * 0xFF51AFD7ED558CCD & MASK
if {k}:
    v = {b}

for v in ({a}, {b}):
    if {k}:
        break

v = 0
for r in ({a}, {b}):
    v = v ^ r

v = 0
for r in [{a}, {b}]:
    v = max(v, r)

y[i, 3] = 1
if {k}:
    return
v = {a}
if i > 2:
    v = {b}

y[i, 3] = {a}
if {k}:
    v = {a}
else:
    return

v = {a}
while True:
    if {k}:
        break
    v = {b}
    break

v = {a}
for q in range(4):
    if q < 2:
        continue
    v = {b}

if (v := {a}) > 3:
    v = {b}

v, r = order({a}, {b})

v, r = swap({a}, {b})

r = {a}
def inner(k):
    return k if i > 1 else r
v = inner({b})

v = max((r for r in ({a}, {b}) if r > 2), default={a})

v = sum(r for r in ({a}, {b}) if {k})

v = folded({a}, {b})

v = {a}
v = v if {k} else {b}

r = {a}
r, v = {b}, r

v = {a}
v |= {b}

v = late({a}) if {k} else late({b}, 1)

u = {b}
v = {a} ^ (u := u + 1)
""")
OBSERVERS: Final = _rows("""
y[i, 4] = v >> 32
y[i, 5] = v & 0xFFFFFFFF

y[i, 4] = v % 7
y[i, 5] = v // 10 & 0xFFFFFFFF

y[i, 4] = v > 5
y[i, 5] = v < t

y[i, 4] = math.gcd(v, 10)

y[i, 4] = int(float(v) / 2**40)

y[i, 4] = (v - t) >> 32
y[i, 5] = (v + i) >> 33

y[i, 4] = min(v, 2**40)
y[i, 5] = (v ^ (v >> 7)) >> 32

r = 0
for q in range(v):
    r += 1
    if r > 3:
        break
y[i, 4] = r
""")
"""Who sees a local: the first row is how every result of the enumeration is seen."""
