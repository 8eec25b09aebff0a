"""Statements about whole numbers of which the translator knows bounds: counters, chains of locals, loops that run
seldom, values that a test lets through. What becomes of them is computed from their signs and their sizes.
"""

from __future__ import annotations

import itertools
from typing import Final

from py2cu.dtypes import F32, F64, Kind
from tests.fuzz.expressions import condition, index, launched, value
from tests.fuzz.statements import assignable, body, statement_of
from tests.fuzz.writer import Value, Writer, fitted

# What a number becomes, where C++ may do as Python does if it has a sign or a size.
USES: Final = (
    "{} // 2", "{} % 3", "abs({})", "{} >> 1", "7 // ({} | 1)", "{} // -2", "(0 - {}) // 2", "{} % -5",
    "min({}, 5) // 2", "math.floor({} / 2)", "max({}, 0) % 7", "({} + 2147483647) // 3",
    "(2147483648 - {}) % 10", "100 % ({} | 1)", "int(float({}) / 2.0)", "{} // 4294967296", "round({} / 3)", "{} & 7",
    "math.floor({} / 18446744073709551616.0)", "-{} % 4",
)  # fmt: skip
STEPS: Final = (
    "{} += 1", "{} -= 1", "{} += 2", "{} = {} * 2", "{} //= 2", "{} = -{}", "{} = {} - {k}", "{} += {k}", "{} ^= 1",
)  # fmt: skip
PLACE_LIMIT: Final = 101
# Heads of loops that end early, or never begin; `{}` is a whole number, `{i}` an index. Between which the variable is.
SELDOM: Final = (
    ("max({}, -2), 3", -2, 2), ("0, 6, max({}, 2)", 0, 4), ("min({}, 5), -1, -2", 0, 5), ("5, min({}, 1)", 0, 0),
    ("{} % 7, {i} % 5", 0, 4), ("{i}, min({i} + 3, 2147483647)", 0, PLACE_LIMIT + 2), ("{i}, 2, 4294967296", 0, 1),
    ("536870912, 1073741824, 2147483647", 2**29, 2**29), ("2, {i} - 4, -1", -3, 2),
    ("max({}, 0) + 2147483648, 8", 0, 0),
)  # fmt: skip
# What kernels compute of indices and of what the launch says, of which CUDA has the latter as unsigned numbers.
PLACES: Final = (
    "{a} + {b} - {c}", "{c} - {a} * {b}", "({a} + {b}) * -{c}", "-({a} * {b})", "{a} * {c} - {b}", "{b} * {c} - {a}",
    "{a} // ({b} + 1) - {c}", "max({b} * {c} - {a}, 0)", "({a} + {b} if {a} > {c} else -{c})", "({a} + {b}) % -{c}",
    "{a} + {b} | -{c}", "abs({a} + {b} - {c})", "min({a} + {b}, {c} - 9)", "(-{c} if {a} else {b}) * {b}",
    "{c} * {b} ^ -{a}", "~({a} + {b})", "({b} - {a} << 2)",
)  # fmt: skip
# What brings a number between bounds, and what looks as if it did.
LIMITERS: Final = (
    ("while {t} > 10:", "{t} //= 3"), ("while {t} < -5:", "{t} = -{t} // 2"), ("while {t} >= 8:", "{t} >>= 2"),
    ("if {t} < 0:", "{t} = -{t}"), ("if {t} > 3:", "{t} = 3"), ("if not 0 <= {t} < 100:", "{t} = 0"),
    ("if {t} < 0 or {t} > {i}:", "{t} = {i}"), ("while not {t} < 1000:", "{t} = {t} // 2 - 1"),
    ("if {t} <= {i} and {t} != 0:", "{t} = 1 - {t}"), ("while 4 <= {t}:", "{t} = {t} % 4 - 3"),
)  # fmt: skip


def use(w: Writer, name: str) -> None:
    """A local for what becomes of the number."""
    w.add(f"{w.declare(Value('', Kind.INT)).text} = {w.pick(USES).format(name)}")


def _index(w: Writer) -> str:
    return index(w, Kind.INT, 0).text


def _begin(w: Writer, text: str) -> str:
    """A new local that begins as `text`."""
    name = w.declare(Value("", Kind.INT)).text
    w.add(f"{name} = {text}")
    return name


def _head(w: Writer) -> tuple[str, Value]:
    """Of a loop that runs a few times, or not at all, and its variable."""
    form, low, high = w.pick(SELDOM)
    whole, place = assignable(w, Kind.INT, 1), fitted(index(w, Kind.INT, 0), 0, PLACE_LIMIT)
    counter = Value(w.fresh("k"), Kind.INT, low, high)
    return f"for {counter.text} in range({form.format(whole.text, i=place.text)}):", counter


@statement_of(2, nests=True, loops=True)
def seldom_loop(w: Writer) -> None:
    head, counter = _head(w)
    w.loops += 1
    with w.block(head):
        w.counters.append(counter)
        body(w)
    w.loops -= 1


@statement_of(3, nests=True, loops=True)
def counted(w: Writer) -> None:
    """What a loop counts, on every turn or on some, and a copy of it."""
    count = _begin(w, w.pick(["0", "1", "-1", _index(w)]))
    head, counter = _head(w)
    with w.block(head):
        for _ in range(w.pick([1, 2])):
            step = w.pick(STEPS).replace("{}", count).format(k=counter.text)
            if w.chance(3):
                with w.block(f"if {condition(w, 1)}:"):
                    w.add(w.pick([step, step, "break", "continue"]))
            else:
                w.add(step)
    use(w, _begin(w, count) if w.chance(2) else count)


@statement_of(3, nests=True, loops=True)
def placed(w: Writer) -> None:
    """A place that no local holds."""
    own, told = _index(w), launched(w).text
    a, b = w.pick([(own, told), (told, own)])
    place = f"({w.pick(PLACES).format(a=a, b=b, c=w.pick(['1', '3', '8']))})"
    match w.pick(["used", "float", "test", "loop"]):
        case "used":
            use(w, place)
        case "float":
            dtype = w.pick([F32, F64, Kind.FLOAT])
            factor = value(w, dtype, 1).text
            w.add(f"{w.declare(Value('', dtype)).text} = {factor} * {place}")
        case "test":
            found = _begin(w, "0")
            with w.block(f"if {place} {w.pick(['<', '>=', '==', '>'])} {w.pick(['0', '-1', 'len(STEPS) - 5'])}:"):
                w.add(f"{found} = 1")
        case "loop":
            found = _begin(w, "0")
            with w.block(f"for {(turn := w.fresh('k'))} in range({a} + {b} - 9, {a} + {b}, {w.pick(['1', '4'])}):"):
                w.add(f"{found} += {turn}")


@statement_of(2, nests=True, loops=True)
def chain(w: Writer) -> None:
    """Locals that hand their values on, one further every turn of a loop."""
    names = [_begin(w, w.pick(["0", "1"])) for _ in range(w.pick([2, 3, 6]))]
    handed = [f"{after} = {before}" for before, after in itertools.pairwise(names)]
    with w.block(f"for {w.fresh('k')} in range({w.pick([3, 7, 2])}):"):
        new = f"{names[0]} = {fitted(value(w, Kind.INT, 2), -1009, 1009).text}"
        w.add(*w.pick([[*handed[::-1], new], [new, *handed], [*handed, new]]))
    use(w, w.pick(names[::-1]))


@statement_of(3, nests=True)
def limited(w: Writer) -> None:
    number = _begin(w, assignable(w, Kind.INT).text)
    for _ in range(w.pick([1, 2])):
        names = {"t": number, "i": _index(w)}
        test, then = (line.format(**names) for line in w.pick(LIMITERS))
        with w.block(test):
            w.add(then)
    use(w, number)


@statement_of(2, nests=True, loops=True)
def search(w: Writer) -> None:
    """A search for an index, which compares with the element at the index found so far."""
    best, at, weight = w.fresh("m"), w.fresh("k"), w.declare(Value("", F32)).text
    w.add(f"{weight} = {value(w, F32, 1).text}")
    w.add(f"{best} = {w.pick(['0', '3'])}")
    element, found = (f"{w.pick([f'{weight} * ', f'{weight} - '])}LEVELS[{place}]" for place in (at, best))
    test, places = f"{element} {w.pick(['<', '>', '<=', '!='])} {found}", w.pick(["len(LEVELS)", "1, 6", "7, -1, -1"])
    with w.block(f"for {at} in range({places}):"):
        if w.chance(3):
            w.add(f"{best} = {f'{at} - 1' if places == '1, 6' else at} if {test} else {best}")
        else:
            with w.block(f"if {test}:"):
                w.add(f"{best} = {at}")
    w.declare(Value("", Kind.INT, -1, 8), best)


# Steps of hashes and random number generators: `h` is below 2**64, `k` below 2**32.
MIXES: Final = (
    "({h} ^ ({h} >> 30)) * 0xBF58476D1CE4E5B9 & 0xFFFFFFFFFFFFFFFF", "{k} * 0xD2511F53", "{h} % 1000003", "{h} ^ {k}",
    "{h} * 0x5851F42D4C957F2D + {k} & 0xFFFFFFFFFFFFFFFF", "({h} << 13 ^ {h}) & 0xFFFFFFFFFFFFFFFF", "max({h}, {k})",
    "({h} << 7 | {h} >> 57) & 0xFFFFFFFFFFFFFFFF", "({k} * 0xCD9E8D57 >> 32) * {k}", "{h} // 3 + {k}",
    "({h} >> 32) * ({h} & 0xFFFFFFFF)", "{h} & 0xFFFFFFFFFF | {k} << 20", "min({h}, 1 << 63)", "{k} * {k} ^ {h} >> 1",
    "{h} if {h} > 0x8000000000000000 else {h} >> 1",
)  # fmt: skip
DIGESTS: Final = (
    "{h} % 997", "{h} >> 40", "({h} >> 11) % 9973", "{h} // 0x20000000000000", "int({h} >= 1 << 63)", "{h} & 1023",
    "int({h} / 18446744073709551616.0 * 900)", "round({h} * 2.0**-60)", "{h} * 3 & 255", "int({h} == {k} * {k})",
)  # fmt: skip


# What becomes of `{h}`, below 2**64, where it is a number of unknown sign on another path.
JOINED: Final = (
    *DIGESTS, "math.gcd({h}, 10)", "math.isqrt({h}) % 1009", "1000 // (({h} - {k}) % 7 + 1)", "({h} + {k}) >> 34",
    "max({h}, {k}) % 997", "sum(({h}, 1)) >> 40",
)  # fmt: skip
INLINE: Final = (
    "((({k} & 0xFFFFFFFF) << 32) + {i}) >> 33", "({k} & 0xFFFFFFFFFFFFFFFF) % 1009",
    "(({k} & 0xFFFFFFFF) << 32 | {i}) >> 40", "max({k} & 0xFFFFFFFFFFFFFFFF, {i}) >> 34",
    "math.gcd({k} & 0xFFFFFFFFFFFFFFFF, 12)",
)  # fmt: skip


@statement_of(2, nests=True)
def joined_bits(w: Writer) -> None:
    """A number from 2**63 on that meets an index: on another path, in a loop that may run no round, or in a sum."""
    k, h = w.fresh("h"), w.fresh("h")
    place = fitted(index(w, Kind.INT, 0), 0, 100).text
    w.add(f"{k} = {fitted(value(w, Kind.INT, 1), -(2**40), 2**40).text}")
    if w.chance(3):
        w.add(f"{w.declare(Value('', Kind.INT)).text} = {w.pick(INLINE).format(k=k, i=place)}")
        return
    wide = w.pick([f"({k} & 0xFFFFFFFF) << 32", f"{k} & 0xFFFFFFFFFFFFFFFF"])
    first, second = w.pick([(place, wide), (wide, place)])
    w.add(f"{h} = {first}")
    with w.block(w.pick([f"if {condition(w, 1)}:", f"for {w.fresh('k')} in range({place} - 2):"])):
        w.add(f"{h} = {second}")
    if w.chance(3):
        turns = w.declare(Value("", Kind.INT)).text
        w.add(f"{turns} = 0")
        with w.block(f"for {w.fresh('k')} in range({h}):"):
            w.add(f"{turns} += 1", f"if {turns} > 2:", "    break")
    w.add(f"{k} &= 0xFFFF")
    w.add(f"{w.declare(Value('', Kind.INT)).text} = {w.pick(JOINED).format(h=h, k=k)}")


@statement_of(2, nests=True)
def mixed_bits(w: Writer) -> None:
    """Steps of a hash in Python integers below 2**64."""
    h, k = w.fresh("h"), w.fresh("h")
    w.add(f"{k} = {fitted(value(w, Kind.INT, 1), -(2**40), 2**40).text} & 0xFFFFFFFF")
    first = w.pick([k, "0xFFFFFFFFFFFFFFFF", "0xCBF29CE484222325", f"{k} * {k}"])
    w.add(f"{h} = {first} & 0xFFFFFFFFFFFFFFFF")
    with w.block(w.pick(["if True:", f"if {condition(w, 1)}:", f"for {w.fresh('k')} in range(3):"])):
        for _ in range(w.pick([1, 2])):
            w.add(f"{h} = {w.pick(MIXES).format(h=h, k=k)}")
        if w.chance(2):
            w.add(f"{k} = {h} >> {w.pick([32, 40])}")
    w.add(f"{w.declare(Value('', Kind.INT, 0, 1024)).text} = {w.pick(DIGESTS).format(h=h, k=k)}")
