"""Kernels that were wrong once, a row each: the family, and the body of a kernel of the enumeration.

`count` adds 1 to `y[i, 0]` and returns it, `put` stores and returns a number: `leaves.HELPERS`.
"""

from __future__ import annotations

from typing import Final

_TEXT: Final = """
# a negative constant index of a part
v = w[:3][-1]
y[i, 4] = v

v = z[i, 1:][-1]
y[i, 4] = v

v = z[i, :3][-2] + w[2:][-6]
y[i, 4] = v

y[i, 1:][-7] = 9

y[i, :3][-1] += 5

v = last(w[:3])
y[i, 4] = v

v = last(z[i, 1:]) + last(w)
y[i, 4] = v

r = local(4, "int64")
r[0], r[1], r[2], r[3] = 1, 2, 3, 4
r[:2][-1] = 7
y[i, 4] = r[:3][-1]
y[i, 5] = r[1]

# a natural from 2**63 on joined with an integer of unknown bound
v = (((int(x[i]) & 0xFFFFFFFF) << 32) + i) >> 33
y[i, 4] = v

v = mix(mix(i)) >> 1
y[i, 4] = v >> 32
y[i, 5] = v & 0xFFFFFFFF

v = i
if x[i] < 2:
    v = int(x[i]) & 0xFFFFFFFFFFFFFFFF
y[i, 4] = v >> 32

v = (int(x[i]) & 0xFFFFFFFFFFFFFFFF) if x[i] < 2 else i
y[i, 4] = v >> 32

r = (int(x[i]) & 0xFFFFFFFFFFFFFFFF, i)
r = r if i > 1 else (r[1], r[0])
y[i, 4] = r[0] >> 32

r = [int(x[i]) & 0xFFFFFFFFFFFFFFFF, i]
r[1] += 1
y[i, 4] = r[0] >> 32

v = max(int(x[i]) & 0xFFFFFFFFFFFFFFFF, i)
y[i, 4] = v >> 32

v = sum(((int(x[i]) & 0xFFFFFFFF) << 32, i))
y[i, 4] = v >> 32

v = down(int(x[i]) & 0xFFFFFFFFFFFFFFFF, i, 2)
y[i, 4] = v >> 32

y[i, 4] = mix(int(x[i]) & 0xFFFFFFFFFFFFFFFF) >> 1
y[i, 5] = mix(i) >> 1

v = int(x[i]) & 0xFFFFFFFFFFFFFFFF
for q in range(i - 99):
    v = i
y[i, 4] = v >> 32

v = i
for q in range(3):
    v = (v + (int(x[i]) & 0xFFFFFFFFFFFFFFFF)) & 0xFFFFFFFFFFFFFFFF
y[i, 4] = v >> 32

# such naturals in calls, ranges and quotients
h = int(x[i]) & 0xFFFFFFFFFFFFFFFF
y[i, 4] = math.gcd(h, 10)

h = int(x[i]) & 0xFFFFFFFFFFFFFFFF
y[i, 4] = math.isqrt(h)

h = int(x[i]) & 0xFFFFFFFFFFFFFFFF
v = 0
for _ in range(h):
    v += 1
    if v > 3:
        break
y[i, 4] = v

y[i, 4] = 1000 // ((((int(x[i]) & 0xFFFFFFFF) << 32) - i) % 7 + 1)

# a bound of a loop that acts
v = 0
for k in range(count(y, i) + 2):
    v += 1
y[i, 4] = v

v = 0
for k in range(0, 6, count(y, i)):
    v += 1
y[i, 4] = v

def inner():
    y[i, 0] += 1
    return int(y[i, 0])
v = 0
for k in range(inner() + 2):
    v += 1
y[i, 4] = v

# hoisted before what stands in front of it
y[i, 1] = y[i, 0] + sum(put(y, i, 0, k + 5) for k in range(3))

v = first(y[i, 0], (1, 2) if count(y, i) > 0 else (3, 4))
y[i, 4] = v

u = 5
y[i, 4] = u + sum((u := u + 1) * k for k in range(3))

v = y[i, 0] + int(math.dist((int(count(y, i)), 1), (4, 5)))
y[i, 4] = v

v = int(y[i, 0]) + sum(w[count(y, i) % 4:])
y[i, 4] = v

v = int(y[i, 0]) + sum(q for q in range(count(y, i), 9))
y[i, 4] = v

y[i, 4] = (int(y[i, 0]), 3) < ((1, 2) if count(y, i) > 2 else (1, 4))

y[i, 4] = max((k for k in range(int(y[i, 0]))), default=count(y, i))

y[i, 4] = sum((k for k in range(int(y[i, 0]))), count(y, i))

# operands lifted out of a store's index
y[i, (y[i, 0] + 5 or 1) % 3] = count(y, i)

y[i, 1 + (0 < y[i, 0] + 5 < 6)] = count(y, i) * 10

# compared tuples that stop early
y[i, 1] = (1, count(y, i)) < (i, 3)

y[i, 1] = (i, count(y, i)) == (1, 3)

y[i, 1] = (count(y, i), 2) in ((1, count(y, i)), (2, 1))

y[i, 1] = (i, 3) in ((1, count(y, i)), (2, 1))

# effects in an item of a tuple
y[i, 1] = (count(y, i), count(y, i))[1]

y[i, 1] = (count(y, i), 2, 5)[1:][0]

r = two(y, i)[0]

v = 0
for r in (pair(y, i, 3)[0], int(y[i, 0])):
    v = v * 10 + r
y[i, 4] = v

# a walrus behind a read of its name
v = 5
v += (v := i + 4)
y[i, 4] = v

v = 5
y[i, 4] = second(b=v, a=(v := v + 1))

# leaves 64 bits without a report
v = -((int(x[i]) & 0xFFFFFFFF) << 32)
y[i, 4] = v >> 32

v = (i < 1) - int(x[i])
y[i, 4] = v >> 32
"""


def _rows() -> tuple[tuple[str, str], ...]:
    """Rows are divided by blank lines; a heading names the family of those behind it."""
    rows: list[tuple[str, str]] = []
    family = ""
    for part in _TEXT.strip().split("\n\n"):
        head, _, body = part.partition("\n")
        if head.startswith("# "):
            family, part = head.removeprefix("# "), body
        rows.append((family, part))
    return tuple(rows)


REPRODUCERS: Final = _rows()
