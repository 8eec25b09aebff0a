"""The generated parts of `language.md`: tables of the registries, and what real translations say.

In: the page, whose generated parts stand between `<!-- generated: NAME -->` and `<!-- end -->`. Out: the page with
those parts made anew. `cuda` and `refusal` show what becomes of the Python block above them, any other name is a row of
`TABLES`. `tests/test_language.py` holds the page against this; `pytest --update-golden` writes it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from py2cu.builtins import CONSTANTS, ROWS, formulas
from py2cu.builtins.registry import Builtin, Rule
from py2cu.codes import CODES, explanation
from py2cu.diagnostics import TranslationError, render
from py2cu.dtypes import ALIASES, DTYPES, GENERIC, promote, promote_weak
from py2cu.pipeline import translate_file
from py2cu.source import SourceFile
from py2cu.targets.cuda import helpers as cuda_helpers
from py2cu.targets.cxx.helpers import catalogue
from py2cu.translation import TargetName, Translation

IMPORTS: Final = """\
import cmath
import math
import numpy as np
import torch
import py2cu
from jaxtyping import Complex64, Complex128
from jaxtyping import BFloat16, Bool, Float, Float16, Float32, Float64, Int, Int8, Int16, Int32, Int64, Num
from jaxtyping import UInt8, UInt16, UInt32, UInt64
from torch import Tensor
from py2cu import Constexpr, Index, atomic, blockDim, blockIdx, device, gridDim, kernel, local, shared, syncgrid
from py2cu import ldcs, ldg, opmath, stcs, syncthreads, threadIdx

"""
HELPERS: Final = catalogue.HELPERS | cuda_helpers.HELPERS
PART: Final = re.compile(r"<!-- generated: (\w+) -->\n.*?<!-- end -->\n", re.DOTALL)
BLOCK: Final = re.compile(r"^```python\n(.*?)^```\n", re.DOTALL | re.MULTILINE)
PARAMETERS: Final = {
    "float32": "np.float32", "int32": "np.int32", "uint8": "np.uint8", "int": "int", "float": "float",
    "complex64": "np.complex64",
}  # fmt: skip
HIDDEN: Final = (
    Rule.CAST, Rule.METHOD, Rule.LIKE, Rule.RECEIVER, Rule.COUNT, Rule.INDEX, Rule.OPMATH, Rule.CACHE, Rule.SYNC,
)  # fmt: skip
ARGUMENTS: Final = ("a", "b", "c")


def regenerate(page: str) -> str:
    """The page with every generated part made anew."""

    def made(part: re.Match[str]) -> str:
        name = part[1]
        text = BESIDE[name](_block_above(page, part.start())) if name in BESIDE else TABLES[name]()
        return f"<!-- generated: {name} -->\n{text}\n<!-- end -->\n"

    return PART.sub(made, page)


def kernels_of(page: str) -> list[tuple[int, str, bool]]:
    """Every Python block that holds a kernel: its line, its text, and whether the page shows it refused."""
    return [
        (page.count("\n", 0, block.start()) + 1, block[1], page.startswith("\n<!-- generated: refusal", block.end()))
        for block in BLOCK.finditer(page)
        if "@kernel" in block[1]
    ]


def _block_above(page: str, place: int) -> str:
    *_, block = BLOCK.finditer(page[:place])
    return block[1]


# --- translations ---


def translate(python: str) -> Translation:
    """A block as a file; its imports come last, so that its lines keep their numbers."""
    return translate_file(SourceFile("kernels.py", f"{python}\n{IMPORTS}"), targets=[TargetName.CUDA])


def device_text(python: str) -> str:
    """What the user wrote of a block's translation: no includes, no launchers, no helpers."""
    functions = re.split(r"\n\n(?=\S)", translate(python).cuda.kernel.text.strip())
    return "\n\n".join(text for text in functions if "__global__" in text or _is_device_function(text))


def _is_device_function(text: str) -> bool:
    found = re.search(r"^__device__ .*?(\w+)\(", text, re.MULTILINE)
    return found is not None and found[1] not in HELPERS


def refusal(python: str) -> str:
    """What is printed about a block that is refused."""
    try:
        translate(python)
    except TranslationError as refused:
        return render(refused.diagnostics)
    raise AssertionError(f"this is not refused:\n{python}")


def in_c(expression: str, types: str | Sequence[str]) -> str:
    """What becomes of an expression of `a`, `b` and `c`, parameters of these types; the code where it is refused."""
    each = [types] * len(ARGUMENTS) if isinstance(types, str) else types
    lines = f"{head(each)}    result = {expression}\n    out[i] = result\n"
    text = ""
    for numbers in (("float",), ("float", "int")):  # of numbers that the kernel assigns, the launcher computes nothing
        assigned = (f"    {name} = 0\n" for name, type_ in zip(ARGUMENTS, each, strict=False) if type_ in numbers)
        try:
            text = device_text(lines + "".join(assigned))
        except TranslationError as refused:
            return refused.diagnostics[0].code
        found = re.search(r"^ *[\w<>]+ result = (.*);$", text, re.MULTILINE)
        if found is not None and "_term" not in found[1]:
            return code(found[1])
    raise AssertionError(text)


def head(types: Sequence[str]) -> str:
    """The first lines of a kernel with parameters `a`, `b` and `c` of these types."""
    given = ", ".join(f"{name}: {PARAMETERS[type_]}" for name, type_ in zip(ARGUMENTS, types, strict=False))
    result = "Complex128" if "complex64" in types else "Float64"
    return f'@kernel\ndef f(i: Index["n"], {given}, x: Float32[Tensor, "h w"], out: {result}[Tensor, "n"]):\n'


# --- tables ---


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Markdown; bars inside a cell are escaped."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def code(text: object) -> str:
    return f"`{text}`"


def codes(names: Iterable[object]) -> str:
    return ", ".join(map(code, names))


def dtypes() -> str:
    def aliases(name: str) -> list[str]:
        return [alias for alias, dtype in ALIASES.items() if dtype.name == name]

    rows = [
        [code(f"{row.jaxtyping}[Tensor, …]"), code(row.name), codes(aliases(row.name)), code(row.c),
         f"{row.low:.4g} to {row.high:.4g}" if row.precision else f"{row.low} to {row.high}"]
        for row in DTYPES
    ]  # fmt: skip
    return table(["array of", "scalar and cast", "annotated also as", "in C++", "range"], rows)


def generic() -> str:
    return table(["annotation", "admits"], [[code(name), codes(admits)] for name, admits in GENERIC.items()])


def promotion() -> str:
    def met(a: object) -> str:
        return "–" if a is None else str(a)

    kinds = sorted({row.kind for row in DTYPES})
    weak = [[f"**Python {kind.name.lower()}**", *(met(promote_weak(b, kind)) for b in DTYPES)] for kind in kinds]
    rows = [[f"**{a}**", *(met(promote(a, b)) for b in DTYPES)] for a in DTYPES]
    return table(["", *map(str, DTYPES)], [*rows, *weak])


OPERATORS: Final = (
    ("a + b", "wraps around at the element's width"),
    ("a - b", "the same"),
    ("a * b", "the same"),
    ("a / b", "true division, of whole numbers too"),
    ("a // b", "rounds down"),
    ("a % b", "has the sign of `b`"),
    ("a ** 3", "of whole numbers the exponent cannot be negative"),
    ("a ** b", ""),
    ("-a", "the least number is its own negative"),
    ("a & b", "of whole numbers"),
    ("a << b", "by 0 up to the width less one"),
    ("a >> b", "keeps the sign"),
    ("~a", ""),
    ("a < b", ""),
    ("a < b <= 7", "each operand evaluated once"),
    ("not a", ""),
    ("a and b", "the operand that decides, not its truth"),
    ("a or b", "the same"),
    ("a if b > 0 else 1", "evaluates one branch"),
)


def operators() -> str:
    columns = ("float32", "int32", "uint8", "int")
    rows = [[code(text), *(in_c(text, type_) for type_ in columns), means] for text, means in OPERATORS]
    return table(["Python", *columns[:-1], "Python int", ""], rows)


RANGES: Final = (
    ("i // 4", "an index is not negative"),
    ("a // 4", "an argument may be"),
    ("i % len(x)", "extents are not negative"),
    ("2 ** i", "the exponent cannot be negative"),
    ("min(i + 1, x.shape[1] - 1)", "extents are arguments of the kernel"),
)


def ranges() -> str:
    return table(["Python", "CUDA", ""], [[code(text), in_c(text, "int"), why] for text, why in RANGES])


CASTS: Final = ("int", "float", "bool", "np.float32", "np.int32", "np.uint8", "np.uint64", "np.float16", "torch.bool")


def casts() -> str:
    columns = ("float32", "int32", "uint8", "int")
    rows = [[code(f"{name}(a)"), *(in_c(f"{name}(a)", type_) for type_ in columns)] for name in CASTS]
    return table(["Python", *columns[:-1], "Python int"], rows)


def builtins() -> str:
    """Every function but the casts: its names, and what it becomes."""
    columns = ("float32", "float", "int32", "int", "complex64")
    rows = [
        [codes(map(spelled, row.names)), *(in_c(called(row), arguments(row, type_)) for type_ in columns)]
        for row in sorted(ROWS.values(), key=lambda row: row.key.startswith("py2cu."))
        if row.rule not in HIDDEN and not row.is_part and not row.key.startswith("numba.")
    ]
    return table(["Python", "float32", "Python float", "int32", "Python int", "complex64"], rows)


def called(row: Builtin) -> str:
    """A call with as few arguments as it takes."""
    name = next(name for name in row.names if not name.startswith("complex."))  # methods are called as functions
    return f"{spelled(name)}({', '.join(ARGUMENTS[: row.arity[0]])})"


def arguments(row: Builtin, type_: str) -> Sequence[str]:
    """The types of what it is called with, `type_` wherever any number may stand."""
    return [type_, "int"] if row.rule is Rule.SCALED else [type_] * len(ARGUMENTS)


def spelled(qualified: str) -> str:
    """A qualified name as users write it."""
    return qualified.removeprefix("builtins.").replace("numpy.", "np.")


def formula_rows() -> str:
    rows = [
        [
            codes(row.signature(spelled(name)) for name in row.names),
            code(row.text),
            "float32" * row.in_float32,
        ]
        for row in formulas.ROWS
        if not row.names[0].startswith(OF_NUMBA)
    ]
    return table(["Python", "means", "of halves in"], rows)


def numba_rows() -> str:
    """The functions of Numba's libraries, by what they mean."""
    names: dict[str, list[str]] = {}
    for row in formulas.ROWS:
        if row.names[0].startswith(OF_NUMBA):
            names.setdefault(of_cuda(row), []).append(row.signature(row.names[0].removeprefix("numba.")))
    for pair in formulas.SPLITS:
        if pair.names[0].startswith(OF_NUMBA):
            call = f"{pair.names[0].removeprefix('numba.')}({', '.join(pair.parameters)})"
            names[", ".join(pair.texts)] = [f"{pair.results} = {call}"]
    return table(["Numba", "means"], [[codes(calls), code(text)] for text, calls in names.items()])


def of_cuda(row: formulas.Formula) -> str:
    """The text of a formula; where it is a function of CUDA's header, by that name: `__fadd_rd(float32(a), …)`."""
    called, name = row.text.partition("(")[0], row.names[0].rpartition(".")[2]
    spelled = ROWS[called].spelling.values() if called in ROWS and ROWS[called].is_part else ()
    return next((row.text.replace(called, each) for each in spelled if each.removeprefix("__") == name), row.text)


def split_rows() -> str:
    """Every function that makes two numbers, and what each of them becomes."""

    def row_of(row: formulas.PairFormula, name: str) -> list[str]:
        text = f"{row.results} = {spelled(name)}({', '.join(row.parameters)})"
        first, second = row.results.split(", ")
        cuda = device_text(f"{head(['float32', 'float32'])}    {text}\n    out[i] = {first} + {second}\n")
        found = (re.search(rf"\b{each}_? = (.*);$", cuda, re.MULTILINE) for each in (first, second))
        return [code(text), *(code(each[1]) for each in found if each is not None)]

    rows = [row_of(row, name) for row in formulas.SPLITS for name in row.names if not name.startswith("numba.")]
    return table(["Python", "the first, of float32", "the second"], rows)


def constants() -> str:
    return codes(map(spelled, CONSTANTS))


def refused_functions() -> str:
    rows = [[code(spelled(name)), hint[0].upper() + hint[1:]] for name, hint in formulas.REFUSED.items()]
    return table(["Python", "instead"], rows)


def helper_rows() -> str:
    def comment(text: str) -> str:
        return re.match(r"// (.*)", text)[1]  # type: ignore[index]

    return table(["helper", "what it does"], [[code(name), comment(text)] for name, text in HELPERS.items()])


REFUSED: Final = (
    ("v = {0: x[0, 0]}", "dicts, sets"),
    ("v = [k for k in range(i)]", "lists whose length is not constant"),
    ("v = []; v.append(1)", "lists that grow"),
    ("v = (lambda k: k)(i)", "a `lambda` that has no name"),
    ('v = "text"', "strings outside `print`"),
    ("v = i in range(3)", "`in`, except in a tuple"),
    ("out[i] = x[0]", "a row as a value"),
    ("v = x[::2]", "slices with a step"),
    ("v = x * 2", "arithmetic of whole arrays"),
    ("v = x.sum()", "methods"),
    ("v = x @ x", "`@`"),
    ("for v in sorted(x): pass", "loops over what has no known length"),
    ("match i:\n        case 0: pass", "`match`"),
    ("with torch.no_grad(): pass", "`with`"),
    ("try: pass\n    except: pass", "`try`, `raise`"),
    ("import os", "`import` in a kernel"),
    ("v = (i, 1)[i]", "an index that may leave a tuple"),
    ("x = 1", "assignment to an array parameter"),
    ("i = 1", "assignment to an element index"),
    ("return i", "a kernel's result"),
    ("x[0, 0]", "a value that is dropped"),
)


def refused_syntax() -> str:
    head = '@kernel\ndef f(i: Index["n"], x: Float32[Tensor, "h w"], out: Float32[Tensor, "n"]):\n    out[i] = 0\n'

    def codes_of(python: str) -> str:
        try:
            device_text(f"{head}    {python}\n")
        except TranslationError as refused:
            found = refused.diagnostics[0]
            return f"{code(found.code)}: {found.hint}"
        raise AssertionError(f"this is not refused: {python}")

    rows = [[what, code(re.sub(r"\s+", " ", python)), codes_of(python)] for python, what in REFUSED]
    return table(["not in a kernel", "such as", "instead"], rows)


AREAS: Final = {
    "1": "syntax", "2": "names", "3": "types", "4": "memory and guards", "5": "barriers", "6": "build",
    "7": "performance", "8": "host functions",
}  # fmt: skip


def code_rows() -> str:
    return table(["code", "area", "what"], [[code(c), AREAS[c[1]], row.heading] for c, row in CODES.items()])


def notes() -> str:
    """What `--notes` says."""
    return table(["code", "what costs, and what to write instead"], [[code(c), explanation(c).meaning] for c in NOTES])


OF_NUMBA: Final = ("numba.cuda.fp16.", "numba.cuda.libdevice.")
NOTES: Final = [name for name in CODES if name.startswith("P7")]

TABLES: Final[dict[str, Callable[[], str]]] = {
    "dtypes": dtypes,
    "generic": generic,
    "promotion": promotion,
    "operators": operators,
    "ranges": ranges,
    "casts": casts,
    "builtins": builtins,
    "formulas": formula_rows,
    "numba": numba_rows,
    "splits": split_rows,
    "constants": constants,
    "refused_functions": refused_functions,
    "refused_syntax": refused_syntax,
    "helpers": helper_rows,
    "notes": notes,
    "codes": code_rows,
}
BESIDE: Final[dict[str, Callable[[str], str]]] = {
    "cuda": lambda python: f"```cuda\n{device_text(python)}\n```",
    "refusal": lambda python: f"```text\n{refusal(python)}\n```",
}
