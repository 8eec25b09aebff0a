"""Every diagnostic code: a title, what it means, and an example of what to write instead (`py2cu explain CODE`).

Areas: P1xx syntax outside the language, P2xx names, P3xx types, P4xx memory and guards, P5xx barriers, P6xx build,
P7xx performance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Code:
    """A row: `wrong` is a kernel that gets this code and `right` the same one mended; a test translates both."""

    title: str
    meaning: str
    wrong: str = ""
    right: str = ""


def _file(kernel: str) -> str:
    """A whole file: the imports that `kernel` needs, and `kernel`."""
    types = [name for name in ("Float32", "Int32", "UInt8", "UInt32") if f"{name}[" in kernel]
    known = ("Constexpr", "Index", "atomic", "blockDim", "blockIdx", "kernel", "local", "shared", "syncthreads")
    names = [name for name in (*known, "threadIdx") if name in kernel]
    lead = ["import numpy as np"] if "np." in kernel else []
    lead += [f"from jaxtyping import {', '.join(types)}", "from torch import Tensor"] if types else []
    return "\n".join([*lead, f"from py2cu import {', '.join(names)}", "", "", kernel.strip("\n"), ""])


def _index(body: str) -> str:
    """A file with one index kernel over `x`, `out` and `n`."""
    lines = ["@kernel", 'def f(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):']
    return _file("\n".join(lines + [f"    {line}" for line in body.splitlines()]))


def _unsigned(body: str) -> str:
    head = 'def f(i: Index["n"], x: UInt32[Tensor, "n"], y: Int32[Tensor, "n"], out: Int32[Tensor, "n"]):'
    return _file(f"@kernel\n{head}\n    {body}")


def _scaled(annotation: str) -> str:
    """A file with one index kernel that has a parameter `a` of this annotation."""
    head = 'def f(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]'
    return _file(f"@kernel\n{head}, a: {annotation}):\n    out[i] = a * x[i]")


_SYNTAX: Final = {
    "P100": Code(
        "the file cannot be read",
        "It does not exist, is a directory, may not be read, or is no text in its encoding. Python source is UTF-8 "
        "unless its first or second line names another encoding, such as `# coding: latin-1`. "
        "Or the text of a function is not what Python runs: its file was edited after its import, or nothing keeps the "
        "text, as for what `exec` makes. Reload the file.",
    ),
    "P101": Code(
        "not valid Python",
        "The file does not parse, so nothing in it can be translated. Python itself would refuse it too: run "
        "`python -m py_compile FILE` to hear its own opinion.",
        _index("out[i] = x[i"),
        _index("out[i] = x[i]"),
    ),
    "P102": Code(
        "nested too deeply",
        "An expression, a block or a function holds or calls so many others that reading it would exhaust the stack. "
        "Generated sources, or sums of several hundred terms, do that. Break the expression into several assignments, "
        "or use a loop.",
    ),
    "P103": Code(
        "syntax that has no meaning in a kernel",
        "A kernel is made of assignments, `if`, `for`, `while`, `break`, `continue`, `return`, `print` and `assert`, "
        "over numbers and elements of arrays. Strings outside `print`, lists, comprehensions, `with`, `try` and the "
        "like have nothing to become on a GPU. A line that computes a value and drops it is refused too: most likely "
        "a part of it is missing.",
        _index("if x[i] in (1., 2.):\n    out[i] = 0."),
        _index("if x[i] == 1. or x[i] == 2.:\n    out[i] = 0."),
    ),
    "P104": Code(
        "a loop that is not over `range`",
        "A kernel's `for` counts one name through `range(stop)`, `range(start, stop)` or `range(start, stop, step)`. "
        "To visit the elements of an array, count through its indices. `unroll(range(8))` asks for all rounds in a "
        "row, `unroll(range(n), 4)` for four at a time, a constant.",
        _index("s = 0.\nfor v in x:\n    s += v\nout[i] = s"),
        _index("s = 0.\nfor j in range(len(x)):\n    s += x[j]\nout[i] = s"),
    ),
    "P105": Code(
        "a call that kernels cannot make",
        "Kernels call the functions of `math`, Python's own on numbers (abs, min, max, round, int, float, bool, len), "
        "dtype casts such as `np.float32(v)`, and plain functions of the same file or of one beside it, each with "
        "plain arguments. `print` stands on a line of its own. Methods and functions of libraries are unknown on the "
        "other side.",
        _index("out[i] = sum(x[i], x[0])"),
        _index("out[i] = x[i] + x[0]"),
    ),
    "P106": Code(
        "a kernel's parameters or its return",
        "Every parameter is named: no `*args`. Numbers may have defaults, as in `eps: float = 1e-5`: constants that "
        "a call could pass, of parameters that no shape tells. Arrays have none. Launch objects come first, then "
        "element indices (at most three), then the kernel's own parameters. A kernel returns nothing: its results "
        "are stored in arrays, and the call returns those that it allocated. A device function that returns a value "
        "does so on every path.",
        _index("return 2 * x[i]"),
        _index("out[i] = 2 * x[i]"),
    ),
    "P107": Code(
        "which kernel?",
        "A file holds kernels where functions carry the decorator `@kernel`, imported from py2cu under any name. This "
        "file has none, or none of the name that was asked for, or two of one name, of which Python would keep the "
        "last. A kernel that a call makes, as in `k = kernel(f)`, is there for a program that runs; a file is read.",
        "from jaxtyping import Float32\nfrom torch import Tensor\nfrom py2cu import Index\n\n\n"
        'def f(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):\n    out[i] = x[i]\n',
        _index("out[i] = x[i]"),
    ),
    "P108": Code(
        "no operator of torch",
        "Every kernel becomes an operator of torch, whose schema has at most 60 arguments: two of them are the grid "
        "and the block of an explicit launch, and a complex number is two. At most 26 arrays can be written, and no "
        "name can be a word of the schema language. Put several arrays into the rows of one, or write several kernels.",
        _index("out[i] = x[i]").replace("def f(", "def NoneType("),
        _index("out[i] = x[i]"),
    ),
}

_NAMES: Final = {
    "P201": Code(
        "unknown name",
        "Nothing defines this name: no parameter, no assignment in the kernel, no import, no constant of the file. "
        "Most likely it is misspelled.",
        _index("scale = 2.\nout[i] = scael * x[i]"),
        _index("scale = 2.\nout[i] = scale * x[i]"),
    ),
    "P202": Code(
        "a name that is no number",
        "The name is known, but what it stands for is no number in a kernel. From around the kernel it can use "
        "constants (`FULL = 0xFF`), what operators and `math` make of them, and those of `math`; other values that are "
        "computed when the file runs are unknown to a translator that only reads it. Of an array it can use elements, "
        "`.shape[0]` and `len`. "
        "Of the launch, a device function can use what it is given as arguments.",
        "import os\n" + _index("out[i] = os.sep * x[i]"),
        _index("out[i] = 2. * x[i]"),
    ),
    "P203": Code(
        "assignment to a parameter that is no number",
        "An array parameter is the caller's memory, and a launch object is the hardware's: neither can be made to "
        "mean something else. Assign to elements, `out[i] = …`, or choose another name. Number parameters can be "
        "assigned to, as in Python.",
        _index("x = 2 * x[i]\nout[i] = x[i]"),
        _index("y = 2 * x[i]\nout[i] = y"),
    ),
    "P204": Code(
        "a local that may be unassigned",
        "On some path through the kernel this name is read before anything was assigned to it. Python would raise "
        "UnboundLocalError there; C++ would read whatever the register held. Assign it before the branch or loop.",
        _index("if x[i] > 0:\n    s = x[i]\nout[i] = s"),
        _index("s = 0.\nif x[i] > 0:\n    s = x[i]\nout[i] = s"),
    ),
    "P205": Code(
        "a name that the text alone does not tell",
        "A file is read, not run. A name around a kernel is known where one binding surely counts: the last plain `=`, "
        "`def` or `import` that runs whenever the file does. One in a branch or a loop may be left out; `+=`, `for`, "
        "`del`, `global`, unpacking and decorators bind what only running tells. A decorated kernel of a program that "
        "runs asks what the name is now.",
        "import os\nK = 4\nif os.name == 'nt':\n    K = 8\n" + _index("out[i] = K * x[i]"),
        "K = 4\n" + _index("out[i] = K * x[i]"),
    ),
}

_TYPES: Final = {
    "P301": Code(
        "an annotation that says no type",
        "A kernel takes its types from its annotations, since C++ needs them before anything runs. Arrays are "
        "jaxtyping's `Float32[Tensor, \"h w\"]` or numba's `float32[:, :]`, numbers are `int`, `float`, `bool`, or a "
        'dtype such as `np.int32`, and the index of an index kernel is `Index["n"]`.',
        _file('@kernel\ndef f(i: Index["n"], x: list, out: Float32[Tensor, "n"]):\n    out[i] = x[i]'),
        _index("out[i] = x[i]"),
    ),
    "P302": Code(
        "an element type that is not supported yet",
        "Element types are bool, int8 to int64, uint8 to uint64, float16, bfloat16, float32, float64, complex64 and "
        "complex128; `Float`, `Int`, `Complex`, `Num` and a bare `Tensor` leave them open.",
        _index("out[i] = x[i]").replace("Float32", "Int4"),
        _index("out[i] = x[i]"),
    ),
    "P303": Code(
        "an array in the place of a number",
        "A kernel is the work of one thread, and works on elements: index the array. `len` is the exception, it takes "
        'the array itself. An element index says what it runs over: `Index["n"]`.',
        _index("out[i] = 2 * x"),
        _index("out[i] = 2 * x[i]"),
    ),
    "P304": Code(
        "a dimension that no call could tell",
        "Every dimension is a name, a number, or a sum or product of them, and a call must be able to tell its value: "
        "as the whole extent of an array that the caller gives, or a whole multiple of it, or as an `int` parameter of "
        "the same name. `...`, `*batch` and `_` name nothing.",
        _file('@kernel\ndef f(i: Index["m"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):\n    out[i] = x[i]'),
        _index("out[i] = x[i]"),
    ),
    "P305": Code(
        "a constant that does not fit",
        "The constant meets elements of a type that cannot hold it, does not fit 64 bits, or is a whole number beyond "
        "2**53 that would have to become a float and is none. As in torch a Python number takes the type of the "
        "element that it meets, so `u8 + 300` would have to wrap. Cast the element first, `int(x[i]) + 300`, or choose "
        "another constant.",
        _file(
            '@kernel\ndef f(i: Index["n"], x: UInt8[Tensor, "n"], out: Int32[Tensor, "n"]):\n    out[i] = x[i] + 300'
        ),
        _file(
            '@kernel\ndef f(i: Index["n"], x: UInt8[Tensor, "n"], out: Int32[Tensor, "n"]):\n'
            "    out[i] = int(x[i]) + 300"
        ),
    ),
    "P306": Code(
        "a local of two types",
        "A Python local may hold a Python number now and an element later; a C++ variable has one type. Where the "
        "common type holds every value, it is used. Here it would round a value that Python keeps exact, so the "
        "result would differ: say with a cast when the rounding happens.",
        _index("s = 0.1\nfor j in range(3):\n    s += x[i]\nout[i] = s"),
        _index("s = np.float32(0.1)\nfor j in range(3):\n    s += x[i]\nout[i] = s"),
    ),
    "P307": Code(
        "the wrong kind of number",
        "Indices, bounds of `range` and the operators `& | ^ << >> ~` take whole numbers; a float there is an error in "
        "Python too. A whole number to a power that may be negative is an int or a float in Python, depending on the "
        "value, and C++ must know which. `int(v)` truncates a float.",
        _index("out[i] = x[i / 2]"),
        _index("out[i] = x[i // 2]"),
    ),
    "P308": Code(
        "division by zero",
        "The divisor is the constant zero: Python would raise ZeroDivisionError in every thread.",
        _index("out[i] = x[i % 0]"),
        _index("out[i] = x[i % 2]"),
    ),
    "P309": Code(
        "types do not meet",
        "torch promotes uint16, uint32 and uint64 with Python numbers alone: with another element type there is no "
        "type that holds both, so one side needs a cast.",
        _unsigned("out[i] = x[i] + y[i]"),
        _unsigned("out[i] = np.int32(x[i]) + y[i]"),
    ),
    "P310": Code(
        "not a template argument",
        "`Constexpr[int]` and `Constexpr[bool]` parameters are template arguments in C++: numbers that its compiler "
        "knows. Their default, where they have one, is read from the file, which is not run: a literal, or the name "
        "of a constant. A whole number is at least 0, since it may be an extent, and at most 2147483647.",
        _scaled("Constexpr[float]"),
        _scaled("Constexpr[int] = 2"),
    ),
    "P311": Code(
        "a template without instances",
        "Calls from Python say what a `Constexpr[int]` parameter is, and a module is built for each value that they "
        "ask for. A file that is translated has no calls: give the parameter a default, or name the values that there "
        "are to be instances for, `py2cu translate --constexpr tile=16,32`. A `Constexpr[bool]` always has both.",
        _scaled("Constexpr[int]"),
        _scaled("Constexpr[int] = 2"),
    ),
    "P312": Code(
        "a tuple in the place of a number, or of another length",
        "A device function may return several numbers, and a local may hold them: `lo, hi = minmax(a, b)`, or "
        "`r = minmax(a, b)` and then `r[0]`. In C++ that is a struct, so its items are numbers, there are as many on "
        "every path, and an index of one is a constant. Arithmetic, calls and arrays take one item at a time.",
        _file(
            "def twice(v):\n    return v, 2 * v\n\n\n@kernel\n"
            'def f(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):\n    out[i] = twice(x[i])'
        ),
        _file(
            "def twice(v):\n    return v, 2 * v\n\n\n@kernel\n"
            'def f(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):\n    out[i] = twice(x[i])[1]'
        ),
    ),
}

_MEMORY: Final = {
    "P401": Code(
        "an array indexed the wrong way",
        "An array takes exactly as many indices as its annotation has dimensions, all at once: `x[i, j]`, not "
        "`x[i][j]`, and no slices. To index flat, annotate it flat. `.shape` takes a constant.",
        _file(
            '@kernel\ndef f(i: Index["n"], x: Float32[Tensor, "3 n"], out: Float32[Tensor, "n"]):\n    out[i] = x[i]'
        ),
        _file(
            '@kernel\ndef f(i: Index["n"], x: Float32[Tensor, "3 n"], out: Float32[Tensor, "n"]):\n    out[i] = x[0, i]'
        ),
    ),
    "P402": Code(
        "a kernel that sees no thread",
        "Every thread runs the whole function, and only its index makes it different from the others. This one has no "
        "element index and never looks at `blockIdx` or `threadIdx`, so all threads would do the same work and write "
        "the same elements.",
        _file('@kernel\ndef f(x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):\n    out[0] = x[0]'),
        _index("out[i] = x[i]"),
    ),
    "P403": Code(
        "an option of the decorator",
        "`@kernel` takes size, block, init, name, strided, coarsen and launch_bounds, by keyword. Their values are "
        "literals, or names of literals, because the file is read and not run. A block has one to three extents, "
        "made of numbers, dimensions and whole parameters, and at most 1024 threads, or what `launch_bounds` says.",
        _file(
            '@kernel(block=2048)\ndef f(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):\n'
            "    out[i] = x[i]"
        ),
        _file(
            '@kernel(block=128)\ndef f(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):\n'
            "    out[i] = x[i]"
        ),
    ),
    "P404": Code(
        "an index outside the array",
        "The annotation gives this dimension a fixed extent, and the constant index is outside it. Python would raise "
        "IndexError; a GPU would read or overwrite whatever lies there.",
        _file(
            '@kernel\ndef f(i: Index["n"], x: Float32[Tensor, "3 n"], out: Float32[Tensor, "n"]):\n    out[i] = x[3, i]'
        ),
        _file(
            '@kernel\ndef f(i: Index["n"], x: Float32[Tensor, "3 n"], out: Float32[Tensor, "n"]):\n    out[i] = x[2, i]'
        ),
    ),
    "P405": Code(
        "a guard that would come too late",
        "The grid is rounded up to whole blocks, so the last threads fall past the end and must return before they "
        "touch the array. The kernel has no such guard, and py2cu cannot add one: something was written before the "
        "index was computed, by those threads too. Compute the index first, then return where it passes the end.",
        _file(
            '@kernel\ndef f(x: Float32[Tensor, "n"], out: Float32[Tensor, "n"], runs: Int32[Tensor, "1"]):\n'
            "    runs[0] = 1\n    i = blockIdx.x * blockDim.x + threadIdx.x\n    out[i] = x[i]"
        ),
        _file(
            '@kernel\ndef f(x: Float32[Tensor, "n"], out: Float32[Tensor, "n"], runs: Int32[Tensor, "1"]):\n'
            "    i = blockIdx.x * blockDim.x + threadIdx.x\n    if i >= len(x): return\n"
            "    runs[0] = 1\n    out[i] = x[i]"
        ),
    ),
    "P406": Code(
        "a guard was added (a note)",
        "The grid is rounded up to whole blocks, so the last threads fall past the end. The kernel indexes an array by "
        "a global thread index without comparing it with the extent; the C++ compares it and returns. Where threads "
        "wait for each other none may return: there each access is guarded on its own, reads past the end give 0, "
        "writes and atomic operations do nothing. Write the guard yourself to be rid of the note: the C++ stays the "
        "same.",
        _file(
            '@kernel\ndef f(x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):\n'
            "    i = blockIdx.x * blockDim.x + threadIdx.x\n    out[i] = x[i]"
        ),
        _file(
            '@kernel\ndef f(x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):\n'
            "    i = blockIdx.x * blockDim.x + threadIdx.x\n    if i >= len(x): return\n    out[i] = x[i]"
        ),
    ),
    "P407": Code(
        "a kernel without effect",
        "It writes to no array, and a kernel has no other way to hand anything back.",
        _index("y = 2 * x[i]"),
        _index("y = 2 * x[i]\nout[i] = y"),
    ),
    "P408": Code(
        "an array of the kernel's own",
        "`acc = local(shape, dtype)` makes an array for each thread, `tile = shared(shape, dtype)` one for all threads "
        "of a block, on a line of its own outside loops and branches. The shape of a local one is made of constants, "
        "that of a shared one also of what a launch tells: extents, whole parameters, `blockDim`. A tuple of constants "
        "around the kernel can be looked up in with an index that only the run tells, `WEIGHTS[k]`, where its numbers "
        "are of one kind and its rows of one length.",
        _index("acc = local(i, np.float32)\nacc[0] = x[i]\nout[i] = acc[0]"),
        _index("acc = local(4, np.float32)\nacc[0] = x[i]\nout[i] = acc[0]"),
    ),
    "P409": Code(
        "an order that C++ leaves open",
        "Python evaluates operands from left to right. C++ does not say in which order it does, so a call that writes "
        "to an array, prints or asserts cannot stand beside something that reads arrays or does the like. Nor can it "
        "stand where C++ would make it twice, as `0 < put(x, i) < 5` in the test of a loop, or not at all. On a line "
        "of its own, it happens where Python has it.",
        _file(
            "def put(x, j):\n    x[j] = 0.0\n    return x[j]\n\n\n"
            '@kernel\ndef f(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):\n'
            "    out[i] = put(x, i) + x[i]"
        ),
        _file(
            "def put(x, j):\n    x[j] = 0.0\n    return x[j]\n\n\n"
            '@kernel\ndef f(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):\n'
            "    old = put(x, i)\n    out[i] = old + x[i]"
        ),
    ),
    "P410": Code(
        "a view in rows",
        "`x4 = x.view(-1, 4)` shows a one-dimensional array parameter in rows of 2, 4, 8 or 16 elements, on a line of "
        "its own outside loops and branches. `a, b, c, d = x4[i]` loads a row and `x4[i] = a, b, c, d` stores one, "
        "each in one access of 16 bytes at most; `x4[i, j]` is an element. Device functions take the array itself.",
        _index("x4 = x.view(-1, 3)\nout[i] = x4[i // 3, i % 3]"),
        _index("x4 = x.view(-1, 4)\nout[i] = x4[i // 4, i % 4]"),
    ),
}

_BARRIERS: Final = {
    "P501": Code(
        "a barrier that not all threads reach",
        "At `syncthreads()` the threads of a block wait for each other, at `syncgrid()` those of the grid; where some "
        "never come, CUDA leaves open what happens. So it cannot stand under a condition that varies by thread, behind "
        "a `return` of some of them, or in a loop that they leave at different times. What varies is `threadIdx` and "
        "what is computed from it, for `syncgrid()` also `blockIdx`, the votes of a block and what it shares, what is "
        "loaded from global arrays that the kernel writes or by an index that varies, what atomics and shuffles give, "
        "and what is assigned under such conditions. What all threads of a block load from one place of shared memory "
        "they agree about, where a barrier is between the load and the writes. Put the condition around the accesses "
        "and the barrier behind them.",
        _file(
            '@kernel(size="n")\ndef f(x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):\n'
            "    i = blockIdx.x * blockDim.x + threadIdx.x\n    s = shared(256, np.float32)\n    if i < len(x):\n"
            "        s[threadIdx.x] = x[i]\n        syncthreads()\n        out[i] = s[0]"
        ),
        _file(
            '@kernel(size="n")\ndef f(x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):\n'
            "    i = blockIdx.x * blockDim.x + threadIdx.x\n    s = shared(256, np.float32)\n    if i < len(x):\n"
            "        s[threadIdx.x] = x[i]\n    syncthreads()\n    if i < len(x):\n        out[i] = s[0]"
        ),
    ),
    "P502": Code(
        "an atomic operation that may not happen",
        "It changes an element and gives what was there before, so it counts when and how often it happens. In an "
        "expression it becomes a statement before it; behind `and` and `or`, and in a branch of a conditional, "
        "it may never happen, and an `if` has to say so. In the test of a `while` it stands alone or beside constants "
        "and names: `while atomic.cas(lock, 0, 0, 1) != 0`. `add`, `sub`, `min` and `max` are for whole numbers and "
        "floats, `and_`, `or_` and `xor` for whole numbers and bools, `inc` and `dec` for unsigned ones, `exch` and "
        "`cas` for all of these.",
        _index("if x[i] > 0.0 and atomic.add(out, i, 1.0) < x[i]:\n    out[i] = 0.0"),
        _index("if x[i] > 0.0:\n    if atomic.add(out, i, 1.0) < x[i]:\n        out[i] = 0.0"),
    ),
    "P503": Code(
        "a loop that nothing ends",
        "Nothing in the loop changes what its test asks, leaves the loop or shows outside: once it is entered it goes "
        "on for ever in Python, and C++ may take any such loop for one that ends. Where another thread is to end it, "
        "a plain load need not see what that one writes: ask by an atomic operation, and put `threadfence()` between "
        "what the other writes and its own atomic.",
        _index("while out[0] == 0.0:\n    pass\nout[i] = x[i]"),
        _index("while atomic.add(out, 0, 0.0) == 0.0:\n    pass\nout[i] = x[i]"),
    ),
}

_BUILD: Final = {
    "P601": Code(
        "a compiler refused the text",
        "The place is the Python line behind the C++ line that the compiler points at, or the emitted text where no "
        "Python line is behind it. py2cu should emit only what compiles: unless the text was edited, or the compiler "
        "is too old or mixed from several versions (`py2cu doctor`), please report it as a bug.",
    ),
}

_PERFORMANCE: Final = {
    "P701": Code(
        "arithmetic in double (a note)",
        "Python floats are doubles, and what is computed from them alone stays one, as Python has it. A GPU computes "
        "doubles at a thirty-second or a sixty-fourth of its float32 rate. Where the arrays hold float32 the result is "
        "rounded in the end: compute in float32 from the start, or compute it once and pass it.",
        _file(
            '@kernel\ndef f(i: Index["n"], x: Float32[Tensor, "n"], a: float, b: float, out: Float32[Tensor, "n"]):\n'
            "    out[i] = x[i] * (a / b)"
        ),
        _file(
            '@kernel\ndef f(i: Index["n"], x: Float32[Tensor, "n"], a: float, b: float, out: Float32[Tensor, "n"]):\n'
            "    out[i] = x[i] * a / b"
        ),
    ),
    "P702": Code(
        "an index of 64 bits in a loop (a note)",
        "An index is computed in 32 bits where the launcher can show that it fits: it is made of indices, extents, "
        "loop counters and arguments. Nothing bounds this one, so it takes 64 bits, which a GPU computes in two or "
        "more instructions. Let a loop count it, or bound it with `min` or `%`.",
        _file(
            '@kernel\ndef f(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"], n: int):\n'
            "    at = 0\n    s = 0.\n    while s < 100:\n        s += x[at]\n        at += 3\n    out[i] = s"
        ),
        _file(
            '@kernel\ndef f(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"], n: int):\n'
            "    s = 0.\n    for at in range(0, n, 3):\n        s += x[at]\n    out[i] = s"
        ),
    ),
    "P703": Code(
        "a division in a loop (a note)",
        "GPUs have no instruction that divides whole numbers: by a value that is only known when the kernel runs it "
        "takes some twenty to forty others. By a constant it takes two or three, by a power of two one. Divide before "
        "the loop, count a remainder along with the loop, or make the divisor a constant.",
        _index("s = 0.\nfor j in range(len(x)):\n    s += x[j // (i + 1)]\nout[i] = s"),
        _index("s = 0.\nfor j in range(len(x)):\n    s += x[j // 4]\nout[i] = s"),
    ),
    "P704": Code(
        "an order of indices that does not coalesce (a note)",
        "The threads of a warp differ in x, and the last index of an array runs fastest in memory. Here x is not the "
        "last index while a slower one is, so each thread of a warp touches a cache line of its own, up to 32 times "
        "the traffic. Exchange the indices, or the axes: of `Index` parameters the last one is x.",
        _file(
            '@kernel\ndef f(r: Index["h"], c: Index["w"], x: Float32[Tensor, "w h"], out: Float32[Tensor, "w h"]):\n'
            "    out[c, r] = x[c, r]"
        ),
        _file(
            '@kernel\ndef f(r: Index["h"], c: Index["w"], x: Float32[Tensor, "h w"], out: Float32[Tensor, "h w"]):\n'
            "    out[r, c] = x[r, c]"
        ),
    ),
}

CODES: Final[dict[str, Code]] = {**_SYNTAX, **_NAMES, **_TYPES, **_MEMORY, **_BARRIERS, **_BUILD, **_PERFORMANCE}
