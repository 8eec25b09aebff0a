"""Broken sources for the front end: mutations of the examples, the cases and the standard library.

`python -m tests.mutate --seconds 600` makes them until the time is over, in a process of their own, and says what went
wrong: any exception but a refusal, a hang, memory without bound, a process that ended, or a translation that differs
when it is repeated. Each input follows from the seed and its number: `--seed 1 --only 4711` shows one again.
"""

from __future__ import annotations

import argparse
import ast
import collections
import copy
import dataclasses
import functools
import mmap
import os
import random
import re
import resource
import signal
import struct
import sys
import sysconfig
import textwrap
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

from py2cu.diagnostics import TranslationError
from py2cu.pipeline import translate_file
from py2cu.source import SourceFile, UnreadableSource, decode

HERE = Path(__file__).parent
SECONDS_FOR_ONE = 10
MEMORY = 6 << 30  # address space; what torch or a thread pool would reserve is not loaded here
PRELUDE = (
    "import math, numpy as np, torch\nfrom torch import Tensor\n"
    "from jaxtyping import Bool, Float32, Float64, Int8, Int32, Int64, UInt8\n"
    "from py2cu import Index, blockDim, blockIdx, gridDim, kernel, threadIdx\n\n"
)
ANNOTATIONS = (
    'Float32[Tensor, "n"]', 'Int32[Tensor, "n"]', 'UInt8[Tensor, "h w"]', 'Float64[Tensor, "3 n"]', "int", "float",
    "bool", "np.int32", 'Index["n"]',
)  # fmt: skip
WORDS = (
    "x", "i", "n", "out", "kernel", "Index", "Tensor", "Float32", "math", "range", "len", "None", "True", "lambda",
    "yield", "match", "global", "0", "-1", "9223372036854775808", "1e309", "1j", "0x80000000", "''", '"n m"', "...",
    "(", ")", "[", "]", "{", "}", ":", ",", "=", ":=", "**", "//", "%", "<<", "not", "and", "if", "else", "elif", "for",
    "in", "while", "return", "def", "@", "\\", "\n", "\t", "\f", "é", "\u2028", "#", "*", "~", "==", "await", "del",
)  # fmt: skip
_TOKEN = re.compile(r"\w+|\s+|[-+*/<>=!:]{2}|.", re.DOTALL)


# --- what is mutated --------------------------------------------------------------------------------------------------


@functools.cache
def kernel_sources() -> tuple[str, ...]:
    """The examples, and the Python of every case."""
    sources = [path.read_text(encoding="utf-8") for path in sorted((HERE.parent / "examples").glob("*.py"))]
    for path in sorted((HERE / "cases").rglob("*.case")):
        python = path.read_text(encoding="utf-8").partition("=== python\n")[2]
        sources.append(PRELUDE + re.split(r"^=== ", python, flags=re.MULTILINE)[0])
    return tuple(sources)


@functools.cache
def library_files() -> tuple[Path, ...]:
    """The standard library's modules, its tests left out."""
    folder = Path(sysconfig.get_path("stdlib"))
    return tuple(path for path in sorted(folder.rglob("*.py")) if not {"test", "site-packages"} & set(path.parts))


@functools.lru_cache(maxsize=64)
def library_module(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def make_source(seed: int, number: int) -> bytes:
    """Input `number` of a run."""
    choose = random.Random(f"{seed}/{number}")
    makers = [_mutated_trees, _mutated_kernels, _kernel_of_library, _library_kernels, _mutated_library]
    maker = choose.choices(makers, [12, 6, 6, 3, 1])[0]
    return maker(choose)


def _mutated_kernels(choose: random.Random) -> bytes:
    return mutated(choose.choice(kernel_sources()), choose)


def _mutated_trees(choose: random.Random) -> bytes:
    """Mutations that leave a file Python, so that more of it reaches the passes."""
    try:
        tree = ast.parse(choose.choice(kernel_sources()))
    except SyntaxError:
        return b""
    for _ in range(choose.choice([1, 1, 2, 3, 5])):
        change_tree(tree, choose)
    try:
        return ast.unparse(ast.fix_missing_locations(tree)).encode("utf-8", "surrogatepass")
    except ValueError:  # it writes no f-string with a comparison in it
        return b""


def _mutated_library(choose: random.Random) -> bytes:
    return mutated(library_module(choose.choice(library_files())), choose)


def _library_kernels(choose: random.Random) -> bytes:
    """Functions of a library module as they stand, under the decorator."""
    functions = _functions(library_module(choose.choice(library_files())))
    texts = [
        _decorated(function, ast.unparse(ast.Module(function.body, [])), choose) for function in _few(functions, choose)
    ]
    text = PRELUDE + "\n\n".join(texts)
    return mutated(text, choose) if choose.random() < 0.5 else text.encode("utf-8", "surrogatepass")


def _kernel_of_library(choose: random.Random) -> bytes:
    """Functions of a library module with everything that kernels lack replaced, so that the passes see their shapes."""
    texts = []
    for function in _few(_functions(library_module(choose.choice(library_files()))), choose):
        body = _Numbers(choose).block(function.body)
        read = {node.id for node in ast.walk(body) if isinstance(node, ast.Name) and node.id.endswith("_")}
        names = sorted(read)
        start = [f"{name} = {choose.choice(['0', '0.5', 'x[i]', 'k[i]', 'n', '1 - i', 'True'])}" for name in names]
        texts.append(_decorated(function, "\n".join([*start, ast.unparse(body), "out[i] = x[i]"]), choose, plain=True))
    text = PRELUDE + "\n\n".join(texts)
    return mutated(text, choose) if choose.random() < 0.2 else text.encode("utf-8", "surrogatepass")


def _functions(text: str) -> list[ast.FunctionDef]:
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return []
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]


def _few(functions: list[ast.FunctionDef], choose: random.Random) -> list[ast.FunctionDef]:
    return choose.sample(functions, min(len(functions), choose.randint(1, 4)))


def _decorated(function: ast.FunctionDef, body: str, choose: random.Random, plain: bool = False) -> str:
    index, rest = 'i: Index["n"], n: int, ', ""
    if plain:
        rest = 'x: Float32[Tensor, "n"], k: Int32[Tensor, "n"], out: Float32[Tensor, "n"]'
    else:
        names = [arg.arg for arg in function.args.args] or ["x"]
        rest = ", ".join(f"{name}: {choose.choice(ANNOTATIONS)}" for name in dict.fromkeys(names))
    name = function.name if function.name not in ("kernel", "Index") else "f"
    return f"@kernel\ndef {name}({index}{rest}):\n{textwrap.indent(body, '    ')}\n"


@dataclasses.dataclass
class _Numbers(ast.NodeTransformer):
    """Rewrites library code into the language: what it calls, the text it holds and what it asks of objects."""

    choose: random.Random

    def block(self, body: list[ast.stmt]) -> ast.Module:
        statements = [new for stmt in body if (new := self.statement(stmt)) is not None]
        return ast.fix_missing_locations(ast.Module(statements or [ast.Pass()], []))

    def statement(self, stmt: ast.stmt) -> ast.stmt | None:
        match stmt:
            case ast.If() | ast.While() | ast.For():
                stmt.body = self.block(stmt.body).body
                stmt.orelse = self.block(stmt.orelse).body if stmt.orelse and isinstance(stmt, ast.If) else []
                if isinstance(stmt, ast.For):
                    stmt.target, stmt.iter = ast.Name("j", ast.Store()), ast.parse("range(3)", mode="eval").body
                else:
                    stmt.test = self.visit(stmt.test)
                return stmt
            case ast.With() | ast.Try():
                return ast.If(self.number(), self.block(stmt.body).body, [])
            case ast.Assign(targets=[ast.Name(id=name) as target]) | ast.AugAssign(target=ast.Name(id=name) as target):
                target.id = f"{name}_"
                stmt.value = self.visit(stmt.value)
                return stmt
            case ast.Assign() | ast.AugAssign() | ast.Expr():
                return ast.parse(f"out[i] = {ast.unparse(self.visit(stmt.value))}").body[0]
            case ast.Return() | ast.Raise():
                return ast.Return()
            case ast.Break() | ast.Continue() | ast.Pass():
                return stmt
            case _:
                return None

    def number(self) -> ast.expr:
        texts = ["x[i]", "k[i]", "0", "1", "-1", "2.5", "i", "n", "1 << 40", "True", "out[i]", "k[-1]", "x.shape[0]"]
        return ast.parse(self.choose.choice(texts), mode="eval").body

    def visit(self, node: ast.AST) -> ast.AST:
        match node:
            case ast.BinOp() | ast.UnaryOp() | ast.BoolOp() | ast.IfExp():
                return self.generic_visit(node)
            case ast.operator() | ast.unaryop() | ast.boolop() | ast.expr_context():
                return node
            case ast.Compare():
                node.ops = [
                    op if not isinstance(op, ast.In | ast.NotIn | ast.Is | ast.IsNot) else ast.Lt() for op in node.ops
                ]
                node.left, node.comparators = self.visit(node.left), [self.visit(item) for item in node.comparators]
                return node
            case ast.Call(args=args) if 0 < len(args) < 3 and not any(isinstance(arg, ast.Starred) for arg in args):
                name = self.choose.choice(["math.sqrt", "abs", "int", "float", "round", "np.int32", "math.floor"])
                name = name if len(args) == 1 else self.choose.choice(["min", "max", "math.atan2"])
                return ast.Call(ast.parse(name, mode="eval").body, [self.visit(arg) for arg in args], [])
            case ast.Name(id=name):
                return ast.Name(f"{name}_", ast.Load())
            case ast.Constant(value=bool() | int() | float()):
                return node
            case _:
                return self.number()


# --- how it is mutated ------------------------------------------------------------------------------------------------


def mutated(text: str, choose: random.Random) -> bytes:
    """`text` after one to six mutations."""
    for _ in range(choose.choice([1, 1, 1, 2, 3, 6])):
        text = choose.choice(_MUTATIONS)(text, choose)[: 1 << 20]
    data = text.encode("utf-8", "surrogatepass")
    return _flip_bytes(data, choose) if choose.random() < 0.05 else data


def _change_tokens(text: str, choose: random.Random) -> str:
    """One to four tokens left out, doubled, exchanged, or replaced by another word."""
    tokens = _TOKEN.findall(text) or [""]
    for _ in range(choose.randint(1, 4)):
        at, other = choose.randrange(len(tokens)), choose.randrange(len(tokens))
        match choose.randrange(5):
            case 0:
                tokens[at] = ""
            case 1:
                tokens[at] *= choose.choice([2, 2, 2, 50])
            case 2:
                tokens[at], tokens[other] = tokens[other], tokens[at]
            case 3:
                tokens[at] = choose.choice(WORDS)
            case _:
                tokens[at] += choose.choice(["", " "]) + choose.choice(WORDS)
    return "".join(tokens)


def _truncate(text: str, choose: random.Random) -> str:
    return text[: choose.randrange(len(text) + 1)]


def _change_lines(text: str, choose: random.Random) -> str:
    lines = text.splitlines(keepends=True) or [""]
    at, other = choose.randrange(len(lines)), choose.randrange(len(lines))
    match choose.randrange(4):
        case 0:
            del lines[at]
        case 1:
            lines.insert(other, lines[at])
        case 2:
            lines[at], lines[other] = lines[other], lines[at]
        case _:
            lines[at] = choose.choice(["", " ", "    ", "\t"]) + lines[at].lstrip()
    return "".join(lines)


def _splice(text: str, choose: random.Random) -> str:
    """A piece of another source in the place of a piece of this one."""
    other = choose.choice(kernel_sources())
    if choose.random() < 0.3:
        other = library_module(choose.choice(library_files()))
    mine, theirs = text.splitlines(keepends=True) or [""], other.splitlines(keepends=True) or [""]
    at, start = choose.randrange(len(mine)), choose.randrange(len(theirs))
    mine[at : at + choose.randrange(3)] = theirs[start : start + choose.randint(1, 8)]
    return "".join(mine)


def _rename(text: str, choose: random.Random) -> str:
    words = sorted(set(re.findall(r"\w+", text)) - {"kernel", "py2cu"})
    if not words:
        return text
    new = choose.choice(words if choose.random() < 0.5 else WORDS)
    return re.sub(rf"\b{re.escape(choose.choice(words))}\b", lambda _: new, text)


def _nest(text: str, choose: random.Random) -> str:
    """A name or number inside many brackets or signs."""
    open_, close = choose.choice(
        [("(", ")"), ("x[", "]"), ("-", ""), ("not ", ""), ("abs(", ")"), ("[", "]"), ("~", "")]
    )
    places = [found.span() for found in re.finditer(r"\b[a-z0-9.]+\b", text)]
    if not places:
        return text
    start, end = choose.choice(places)
    depth = choose.choice([2, 20, 100, 300])
    return f"{text[:start]}{open_ * depth}{text[start:end]}{close * depth}{text[end:]}"


def _flip_bytes(data: bytes, choose: random.Random) -> bytes:
    changed = bytearray(data or b"\0")
    for _ in range(choose.randint(1, 8)):
        changed[choose.randrange(len(changed))] = choose.randrange(256)
    return bytes(changed)


NUMBERS = (0, 1, -1, 2, 255, 256, 2**31 - 1, 2**31, 2**32, 2**62, 2**63 - 1, 2**63, 0.5, -0.0, 1e-45, 1e39, 1e308, True)
OPERATORS = (
    ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.BitAnd, ast.BitOr, ast.BitXor, ast.LShift,
    ast.RShift,
)  # fmt: skip
CALLS = ("abs", "min", "max", "round", "int", "float", "bool", "math.floor", "math.exp", "math.pow", "np.int8", "len")


def change_tree(tree: ast.Module, choose: random.Random) -> None:
    """One expression, operator, number or statement of a function replaced, wrapped, moved or left out."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    if not functions:
        return
    nodes = [node for stmt in choose.choice(functions).body for node in ast.walk(stmt)]
    values = [
        node for node in nodes if isinstance(node, ast.expr) and not isinstance(getattr(node, "ctx", None), ast.Store)
    ]
    bodies = [node.body for node in (*functions, *nodes) if isinstance(getattr(node, "body", None), list)]
    match choose.randrange(6):
        case 0:
            body = choose.choice(bodies)
            del body[choose.randrange(len(body))]
            body or body.append(ast.Pass())
        case 1:
            moved = copy.deepcopy(choose.choice(choose.choice(bodies)))
            body = choose.choice(bodies)
            body.insert(choose.randrange(len(body) + 1), moved)
        case 2:
            body = choose.choice(bodies)
            at = choose.randrange(len(body))
            head = choose.choice(["if x[i] > 0:", "while i < 3:", "for j in range(3):", "for i in range(2, i, -1):"])
            wrapped = ast.parse(f"{head} pass").body[0]
            wrapped.body = [body[at]]
            body[at] = wrapped
        case _ if values:
            _change_value(choose.choice(values), values, nodes, choose)


def _change_value(node: ast.expr, values: list[ast.expr], nodes: list[ast.AST], choose: random.Random) -> None:
    """`node` becomes another expression, in the place where it stands."""
    old, other = copy.deepcopy(node), copy.deepcopy(choose.choice(values))
    call = ast.parse(choose.choice(CALLS), mode="eval").body
    new = choose.choice([
        other, ast.BinOp(old, choose.choice(OPERATORS)(), other), ast.Call(call, [old, other], []),
        ast.Call(call, [old], []), ast.IfExp(other, old, other), ast.Constant(choose.choice(NUMBERS)),
        ast.UnaryOp(choose.choice([ast.USub, ast.Not, ast.Invert])(), old), ast.Compare(old, [ast.Lt()], [other]),
        ast.BoolOp(choose.choice([ast.And, ast.Or])(), [old, other]), ast.Constant(choose.choice(NUMBERS)),
    ])  # fmt: skip
    for parent in nodes:
        for field, value in ast.iter_fields(parent):
            if value is node:
                setattr(parent, field, new)
            elif isinstance(value, list):
                value[:] = [new if item is node else item for item in value]


_MUTATIONS: tuple[Callable[[str, random.Random], str], ...] = (
    _change_tokens, _change_tokens, _change_tokens, _truncate, _change_lines, _change_lines, _splice, _rename, _rename,
    _nest,
)  # fmt: skip


# --- what is asked of the translator ----------------------------------------------------------------------------------


class TooLong(Exception):
    """One input took longer than any may."""


def outcome(data: bytes) -> str:
    """`translated`, or `refused: CODES`; anything else is raised."""
    try:
        file = SourceFile("mutated.py", decode(data))
    except UnreadableSource:
        return "refused: P100"
    try:
        done = translate_file(file)
    except TranslationError as error:
        return f"refused: {_codes(error, file)}"
    assert translate_file(file) == done, "two translations of one text differ"
    return "translated"


def _codes(error: TranslationError, file: SourceFile) -> str:
    """The codes of a refusal, every excerpt of which can be drawn."""
    assert str(error).strip(), "refused without a reason"
    lines = len(re.split(r"\r\n|\r|\n", file.text))
    assert all(1 <= item.span.line <= lines for item in error.diagnostics), "a place outside the file"
    return " ".join(sorted({item.code for item in error.diagnostics}))


def limited(data: bytes) -> str:
    """`outcome` within `SECONDS_FOR_ONE`; for a main thread."""

    def stop(*_: object) -> None:
        raise TooLong(f"more than {SECONDS_FOR_ONE} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS_FOR_ONE)
    try:
        return outcome(data)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


# --- the long run -----------------------------------------------------------------------------------------------------


def run(seed: int, seconds: float, first: int = 0) -> tuple[collections.Counter[str], dict[str, int]]:
    """Inputs from `first` on until the time is over: how often each outcome was, and one input for every failure."""
    counts: collections.Counter[str] = collections.Counter()
    failures: dict[str, int] = {}
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for number, said in _in_a_process(seed, first, end):
            first = number + 1
            failed = not said.startswith(("translated", "refused"))
            counts["failed" if failed else said.partition(":")[0]] += 1
            if failed and said not in failures:
                failures[said] = number
                print(f"--only {number}: {said}", flush=True)
    return counts, failures


def _in_a_process(seed: int, first: int, end: float) -> Iterator[tuple[int, str]]:
    """Results of a child, until the time is over or the child is; the input that ended it is the last one."""
    reading, writing = os.pipe()
    number = mmap.mmap(-1, 8)  # the child's: which input it is at
    child = os.fork()
    if child == 0:
        os.close(reading)
        _work(seed, first, end, number, writing)
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as lines:
        for line in lines:
            at, _, said = line.rstrip("\n").partition(" ")
            yield int(at), said
    _, status = os.waitpid(child, 0)
    if status:
        yield struct.unpack("q", number[:])[0], f"the process ended with status {status}"


def _work(seed: int, first: int, end: float, number: mmap.mmap, writing: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    at = first
    with os.fdopen(writing, "w", encoding="utf-8", errors="backslashreplace") as results:
        while time.monotonic() < end:
            number[:] = struct.pack("q", at)
            try:
                said = limited(make_source(seed, at))
            except BaseException as error:  # whatever it is, it is a finding
                said = _described(error)
            print(at, said, file=results, flush=True)
            at += 1
    os._exit(0)


def _described(error: BaseException) -> str:
    """The exception and its innermost frame: what tells one failure from another."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "py2cu" in frame.filename]
    where = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "?"
    return f"{type(error).__name__} at {where}: {str(error)[:100]!r}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.mutate", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="the number of the first input")
    parser.add_argument("--only", type=int, help="write this one input to stdout, and raise what it raises")
    options = parser.parse_args()
    if options.only is not None:
        data = make_source(options.seed, options.only)
        sys.stdout.buffer.write(data)
        print(f"\n# {limited(data)}")
        return
    counts, failures = run(options.seed, options.seconds, options.first)
    print(", ".join(f"{what} {count}" for what, count in counts.most_common()))
    raise SystemExit(bool(failures))


if __name__ == "__main__":
    main()
