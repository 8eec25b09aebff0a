"""The emitted CUDA text with checked integers of 12 bits for `int` and `unsigned`, of 16 where its constants need them.

In: a `Translation`. Out: one for the emulator, or for `tests/support/libraries.py`. `int`, `unsigned` and the narrow
`index_t` are `Checked` (`checked.h`); `int64_t`, elements, template arguments and constants of the module keep their
types. INT32_MAX, with which launchers compare, is the most that a checked `int` holds, and a grid has no more blocks on
an axis. So arrays of some thousands of elements are on both sides of every limit.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Final

from py2cu.ir.abi.signature import evaluate
from py2cu.ir.types import ArrayType
from py2cu.ir.visit import names_in
from py2cu.translation import Translation
from tests.support.emulator import Words, emulate
from tests.widths.tokens import Token, code, join, spaced, tokenize

BITS: Final = (12, 16)
_CHECKED: Final = Path(__file__).with_name("checked.h").read_text(encoding="utf-8")
_TOGETHER: Final = Path(__file__).with_name("together.h").read_text(encoding="utf-8")
_BEFORE: Final = """#include <exception>
#include <memory>
#include <string>
#include <vector>
#include <ucontext.h>
#undef WIDTH_BITS
#define WIDTH_BITS {bits}
#undef assert
#define assert(holds) ((holds) ? void() : throw std::logic_error("an assertion fails"))
#define __shared__ static
#define __align__(bytes) __attribute__((aligned(bytes)))
"""
_WAITS: Final = frozenset((
    "__syncwarp", "__shfl_sync", "__shfl_up_sync", "__shfl_down_sync", "__shfl_xor_sync", "__ballot_sync", "__any_sync",
    "__all_sync", "__match_any_sync", "__activemask", "asm", "cooperative_groups", "__threadfence", "__syncthreads_or",
    "__threadfence_system", "__threadfence_block", "__syncthreads_and", "__syncthreads_count",
))  # fmt: skip
_ON_A_GPU: Final = re.compile(r"^#ifdef __CUDA_ARCH__$.*?^#else$", re.MULTILINE | re.DOTALL)
_OF_BITS: Final = frozenset(("__brev", "__brevll", "__clz", "__clzll", "__ffs", "__ffsll", "__popc", "__popcll"))
_TYPES: Final = {"int": "Int", "unsigned": "Unsigned", "INT32_MAX": "MOST_OF_WIDTH"}
_FLOAT: Final = re.compile(r"(\d+\.\d*(?:e\+?\d+)?)f?")
_LIMITS: Final = {"INT32_MIN": 2**31, "INT64_MIN": 2**63, "UINT32_MAX": 2**32 - 1, "INT64_MAX": 2**63 - 1}
_LONGER: Final = frozenset(("char", "short", "int", "long"))  # behind `unsigned`
_KEEPS: Final = frozenset(("reinterpret_cast", "asm"))  # helpers about the bits of numbers keep their types
_DEVICE: Final = frozenset(("__global__", "__device__", "__constant__"))
_OPENING: Final = {"(": ")", "[": "]", "{": "}"}


def narrow(translation: Translation) -> Translation:
    """`translation` with its CUDA text, narrowed, in the place of the CPU's."""
    words = Words(
        before=_BEFORE.format(bits=bits_of(translation)),
        counts=f"{_CHECKED}\nusing Count = Unsigned;\nconstexpr int64_t most_blocks = MOST_OF_WIDTH;\n",
        threads=_TOGETHER,
    )
    return emulate(translation, narrowed, words)


def is_within_reach(translation: Translation) -> bool:
    """True where no thread of the CUDA text waits for another, but for all of its block at `__syncthreads()`, and the
    text calls no function of bits.
    """
    on_a_host = _ON_A_GPU.sub("", translation.cuda.kernel.text)
    return (_WAITS | _OF_BITS).isdisjoint(token.text for token in code(tokenize(on_a_host)))


def bits_of(translation: Translation) -> int:
    """The fewest bits that hold the constants of the functions for the device."""
    least, most = BITS
    return most if any(2 ** (least - 1) <= value < 2 ** (most - 1) for value in constants_of(translation)) else least


def constants_of(translation: Translation) -> Iterator[int]:
    """The whole numbers of the functions for the device, and the products of constant extents, which indices reach."""
    arrays = (p.type for signature in translation.signatures for p in signature.arrays)
    shapes = [type_.dims for type_ in arrays if isinstance(type_, ArrayType)]
    yield from (math.prod(evaluate(dim, {}) for dim in dims if not names_in(dim)) for dims in shapes)
    declarations = [code(chunk) for chunk in chunks(tokenize(translation.cuda.kernel.text))]
    named = _values_of_names(declarations)
    device = (chunk for chunk in declarations if _DEVICE & {t.text for t in chunk})
    yield from (value for chunk in device for value in _constants(chunk, named))


def _values_of_names(declarations: Sequence[Sequence[Token]]) -> dict[str, str]:
    """The whole numbers that the module names: `constexpr int WIDE = 2 * TILE;`."""
    values: dict[str, str] = {}
    for chunk in declarations:
        words = [token.text for token in chunk]
        if words[:1] == ["constexpr"] and words[1] != "double" and words[1] != "float":
            text = (
                " ".join(words[words.index("=") + 1 : -1]).replace("/", "//").replace("true", "1").replace("false", "0")
            )
            values[words[2]] = str(eval(text, {"int64_t": int}, {name: int(each) for name, each in values.items()}))
    return values


def _constants(tokens: Sequence[Token], named: Mapping[str, str]) -> Iterator[int]:
    """The whole numbers of a declaration, floats truncated, and the sizes of its arrays, `tile[64][64]`."""
    size = 1
    words = [named.get(token.text, token.text) for token in tokens]
    for opening, word, closing in zip(words, words[1:], words[2:], strict=False):
        if word.isdecimal():
            is_extent = (opening, closing) == ("[", "]")
            size = size * int(word) if is_extent else 1
            yield size if is_extent else int(word)
        elif word in _LIMITS:
            yield _LIMITS[word]
        elif (float_ := _FLOAT.fullmatch(word)) is not None:  # a bound of what may be truncated
            yield int(float(float_[1]))
        elif (word, closing) != ("]", "["):
            size = 1 if word not in "[]" else size


def narrowed(text: str) -> str:
    """The text with checked integers, and with the number of its line before each statement."""
    declarations = list(chunks(tokenize(text)))
    functions = frozenset(filter(None, map(_function, declarations)))
    constants = frozenset(_values_of_names([code(chunk) for chunk in declarations]))
    done = "".join(_narrowed(chunk, functions, constants) for chunk in declarations)
    return done.replace("std::make_unsigned_t<", "Wrapping<")


def _function(chunk: Sequence[Token]) -> str:
    """The name of the device function that a declaration is of, unless it is a helper."""
    words = [token.text for token in code(chunk)]
    return words[words.index("(") - 1] if "__device__" in words and "inline" not in words and "(" in words else ""


def chunks(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    """The declarations of a text: each function and each table is one, and so are both ends of a namespace."""
    chunk: list[Token] = []
    depth = 0
    for place, token in enumerate(tokens):
        chunk.append(token)
        if depth == 0 and token.text in "{}" and _is_end_of_namespace(chunk):
            yield chunk
            chunk = []
            continue
        depth += (token.text in _OPENING) - (token.text in _OPENING.values()) if token.kind == "sign" else 0
        following = next((later for later in tokens[place + 1 :] if later.is_code), None)
        ends = token.text == ";" or (token.text == "}" and (following is None or following.text != ";"))
        if token.kind == "sign" and depth == 0 and ends:
            yield chunk
            chunk = []
    yield chunk


def _is_end_of_namespace(chunk: Sequence[Token]) -> bool:
    """True for `namespace {` and its `}`."""
    return [token.text for token in code(chunk)] in (["namespace", "{"], ["}"])


def _narrowed(chunk: Sequence[Token], functions: Set[str], named: Set[str]) -> str:
    words = {token.text for token in chunk}
    if [token.text for token in code(chunk)[:1]] == ["constexpr"]:
        return join(chunk)
    if ("inline" in words and words & _KEEPS) or _takes_address_of_int(code(chunk)):
        return join(_with_meetings(list(chunk)))
    tokens = list(_with_types([*_with_arguments(_with_shared(chunk), functions, named)]))
    return _with_lines(_with_meetings(tokens)) + _overload(code(chunk))


def _takes_address_of_int(tokens: Sequence[Token]) -> bool:
    """True where a C function gives an `int` through a pointer: `int exponent; frexp(a, &exponent)`."""
    words = [token.text for token in tokens]
    declared = {name for type_, name, end in zip(words, words[1:], words[2:], strict=False) if type_ == "int"}
    return any(
        before in "(," and sign == "&" and name in declared
        for before, sign, name in zip(words, words[1:], words[2:], strict=False)
    )


def _with_shared(tokens: Sequence[Token]) -> list[Token]:
    """The tokens with a pointer for each array of dynamic shared memory, `extern __shared__ float buf[]`."""
    start = next((place for place, token in enumerate(tokens) if token.text == "extern"), None)
    if start is None:
        return list(tokens)
    end = next(place for place, token in enumerate(tokens) if place > start and token.text == ";")
    _, _, *types, name, _, _ = code(tokens[start:end])
    words = [token.text for token in types]
    type_ = " ".join(words[words.index(")") + 1 :] if ")" in words else words)
    pointer = Token("word", f"{type_}* {name.text} = dynamic_shared<{type_}>()", tokens[start].line)
    return [*tokens[:start], pointer, *_with_shared(tokens[end:])]


def _with_arguments(tokens: Sequence[Token], functions: Set[str], named: Set[str]) -> Iterator[Token]:
    """The tokens with `Int(…)` around arguments like `2` and `tile - 1`, which choose an overload of `functions`."""
    constants = _template_constants(code(tokens)) | named
    calls: list[str] = []
    words: list[str] = [""]
    end = -1  # of the argument at hand that is a constant
    for place, token in enumerate(tokens):
        starts = token.is_code and words[-1] in ("(", ",") and bool(calls) and calls[-1] in functions
        if starts and _is_constant(argument := tokens[place : _end(tokens, place, ",)")], constants):
            end = place + len(argument)
            yield from (Token("word", "Int", token.line), Token("sign", "(", token.line))
        if place == end:
            yield Token("sign", ")", token.line)
        if token.text == "(":
            calls.append(_called(words))
        elif token.text == ")":
            calls.pop()
        words += [token.text] * token.is_code
        yield token


def _called(words: Sequence[str]) -> str:
    """The function whose call opens behind `words`: `g` behind `g` and `g<index_t>`."""
    end = len(words) - 1
    if words[end] == ">":
        end -= words[::-1].index("<") + 1 if "<" in words else 0
    return words[end]


def _template_constants(tokens: Sequence[Token]) -> set[str]:
    """The names of the integers that a template takes: `template <int tile, typename T>`."""
    words = [token.text for token in tokens]
    if words[:1] != ["template"]:
        return set()
    head = words[: words.index(">")]
    return {name for type_, name in itertools.pairwise(head) if type_ == "int"}


def _is_constant(argument: Sequence[Token], constants: Set[str]) -> bool:
    """True for a sum or product of numbers and template arguments."""
    words = [token.text for token in code(argument)]
    return bool(words) and all(word.isdecimal() or word in constants or word in "+-*" for word in words)


def _with_types(chunk: Sequence[Token]) -> Iterator[Token]:
    """The chunk with other types: template parameters and constants keep theirs."""
    head = 0  # how deep in `template <…>`
    for place, token in enumerate(chunk):
        before = [other.text for other in chunk[:place] if other.is_code][-1:]
        after = next((other.text for other in chunk[place + 1 :] if other.is_code), "")
        if token.text == "<" and (head or before == ["template"]):
            head += 1
        elif token.text == ">" and head:
            head -= 1
        is_part = token.text in ("int", "unsigned") and (after in _LONGER or before[:1] in (["long"], ["unsigned"]))
        is_constant = head or before == ["constexpr"]
        if token.kind == "word" and token.text in _TYPES and not is_constant and not is_part:
            yield Token("word", _TYPES[token.text], token.line)
        else:
            yield token


def _with_meetings(tokens: list[Token]) -> list[Token]:
    """The tokens with both results of each `test ? a : b` in the type in which they meet."""
    place = next((place for place, token in enumerate(tokens) if token.text == "?"), None)
    if place is None:
        return tokens
    middle = _end(tokens, place + 1, ":")
    end = _end(tokens, middle + 1, ",)]}:;")
    then, orelse = (_with_meetings(part) for part in (tokens[place + 1 : middle], tokens[middle + 1 : end]))
    line = tokens[place].line
    types = Token("word", f"meet<decltype({spaced(then)}), decltype({spaced(orelse)})>", line)
    before, after = Token("sign", "(", line), Token("sign", ")", line)
    chosen = [tokens[place], types, before, *then, after, tokens[middle], types, before, *orelse, after]
    return [*tokens[:place], *chosen, *_with_meetings(tokens[end:])]


def _end(tokens: Sequence[Token], start: int, closing: str) -> int:
    """Where an operand that begins at `start` ends: at one of these signs, outside brackets and other conditions."""
    depth = conditions = 0
    for place in range(start, len(tokens)):
        token = tokens[place]
        if token.kind != "sign":
            continue
        if depth == 0 and token.text in closing and not (token.text == ":" and conditions):
            return place
        depth += (token.text in _OPENING) - (token.text in _OPENING.values())
        conditions += (token.text == "?") - (token.text == ":") if depth == 0 else 0
    return len(tokens)


def _with_lines(chunk: Sequence[Token]) -> str:
    """The chunk with `width_at(12);` before the statements of its functions."""
    out: list[str] = []
    stack: list[str] = []  # what is open: "block", or the bracket
    previous = ""
    for place, token in enumerate(chunk):
        out.append(token.text)
        if not token.is_code:
            continue
        if token.kind == "sign" and token.text in _OPENING:
            is_block = token.text == "{" and previous in (")", "else", "do", ";", "}", "{") and stack[-1:] != ["{"]
            stack.append("block" if is_block else token.text)
        elif token.kind == "sign" and token.text in _OPENING.values() and stack:
            stack.pop()
        previous = token.text
        following = next((later for later in chunk[place + 1 :] if later.is_code), None)
        starts = token.kind == "sign" and token.text in ";{}" and stack[-1:] == ["block"]
        if starts and following is not None and following.text not in ("else", "while", "}", ")", ";", ","):
            out.append(f" width_at({following.line});")
    return "".join(out)


def _overload(tokens: Sequence[Token]) -> str:
    """For a template of one type, whose arguments may now have several: an overload that lets them meet."""
    words = [token.text for token in tokens]
    if words[:5] != ["template", "<", "typename", "T", ">"] or "(" not in words:
        return ""
    opening = words.index("(")
    parameters = words[opening + 1 : words.index(")")]
    name, count = words[opening - 1], sum(word == "," for word in parameters) + 1
    plain = [word for word in parameters if word not in (",", "const")]
    if count < 2 or plain[::2] != ["T"] * count or len(plain) != 2 * count:
        return ""
    types = ", ".join(f"typename T{number}" for number in range(count))
    taken = ", ".join(f"T{number} a{number}" for number in range(count))
    meeting = "T0"
    for number in range(1, count):
        meeting = f"Meet<{meeting}, T{number}>"
    differ = " || ".join(f"!std::is_same_v<T0, T{number}>" for number in range(1, count))
    checked = " || ".join(f"is_checked<T{number}>" for number in range(count))
    values = ", ".join(f"M(a{number})" for number in range(count))
    return (
        f"\ntemplate <{types}, typename M = {meeting}, typename = std::enable_if_t<({differ}) && ({checked})>>\n"
        f"static M {name}({taken})\n{{\n    return {name}({values});\n}}\n"
    )
