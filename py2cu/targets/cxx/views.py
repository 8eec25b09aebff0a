"""Describes one kernel for a template: a frozen record of texts and flags, so that templates loop and test, but decide
nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from textwrap import wrap
from typing import Final

from py2cu import ir
from py2cu.passes.lowering.widen_halves import ROUND_TO
from py2cu.targets.cxx.dialect import Dialect
from py2cu.targets.cxx.functions import FunctionView
from py2cu.targets.cxx.includes import MATH, headers_of_types
from py2cu.targets.cxx.launcher.packs import PackView
from py2cu.targets.cxx.launcher.values import ValueText
from py2cu.targets.cxx.lines import Line
from py2cu.targets.cxx.parameters import (
    Argument,
    template_head,
    typenames,
    wrapped,
)
from py2cu.targets.cxx.statements import Emitter

_ZEROS: Final = {"bool": "false", "int64_t": "0", "double": "0.0"}
"""By type, what a kernel gets for an optional number that is left out; it reads none of them."""


@dataclass(frozen=True, slots=True)
class IndexLoop:
    """The loop over one element index on the CPU."""

    name: str
    extent: str
    end: str  # the local that holds where the loop ends
    axis: str
    is_product: bool

    @property
    def operand(self) -> str:
        """The extent behind a `<`."""
        return self.extent if self.is_product else f"({self.extent})"


@dataclass(frozen=True, slots=True)
class Overload:
    """The launcher of a template for one set of dtypes: the types of its type parameters, and its arguments."""

    types: tuple[str, ...]
    launch_arguments: tuple[Argument, ...]


@dataclass(frozen=True, slots=True)
class Forward:
    """A launcher that calls the launch template of its kernel: an overload, or a full specialisation."""

    head: str
    function: str
    arguments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class KernelView:
    """One kernel for the templates of a target; `threads` are the extents of the launch in x, y, z."""

    name: str
    op: str  # the kernel's name; `name` has dtypes behind it where the instances of a kernel have several texts
    doc: tuple[str, ...]
    is_index: bool
    is_template: bool
    helpers: tuple[str, ...]
    functions: tuple[FunctionView, ...]
    constants: tuple[ir.ConstantDeclaration, ...]  # of the module, that the text names
    tables: tuple[str, ...]  # declarations of constants that the body and the functions look things up in
    kernel_arguments: tuple[Argument, ...]
    launch_arguments: tuple[Argument, ...]
    computed: tuple[ValueText, ...]  # what the launcher computes for the kernel
    indices: tuple[IndexLoop, ...]  # CPU index kernels, slowest first
    launch: tuple[str, ...]  # CPU block kernels: the launch objects that the body reads
    threads: tuple[str, ...]
    block: tuple[str, ...]
    fits: str  # the condition for 32-bit indices; empty where there is nothing to choose
    body: tuple[Line, ...]
    launch_bounds: tuple[int, ...] = ()
    has_open_block: bool = False  # the block's extents depend on arguments of a call
    shared_bytes: str = ""  # of a block's dynamic shared memory; empty where it has none
    runs_whole_blocks: bool = False  # on the CPU: it is called once a block, and goes through the threads by itself
    has_block_instance: bool = False  # on the CPU: calls without a launch of their own have an instance
    syncs_grid: bool = False  # its blocks wait for each other
    waits_anywhere: bool = False  # on the CPU: a thread may wait for any other one
    asserts: bool = False  # on the CPU: an `assert` may throw
    fails_with_values: bool = False  # on the CPU: the message of an `assert` has values
    sizes: tuple[str, ...] = ()  # on the CPU: the greatest decides whether a launch is large
    shared_limit_condition: str = ""  # the condition for `allow_shared`; empty if it is always called
    constexprs: tuple[Argument, ...] = ()  # template arguments of the user's: first, since no call can deduce them
    types: tuple[str, ...] = ()  # type parameters of a generic kernel: "T"
    optional: tuple[tuple[str, str], ...] = ()  # arrays that may be null, and the template arguments that say whether
    overloads: tuple[Overload, ...] = ()  # of a template; one if only values are its parameters
    choices: tuple[tuple[str, ...], ...] = ()  # the values of the constexprs, for which there are instances
    in_rows: tuple[str, ...] = ()  # on CUDA: arrays of which a row is loaded or stored at once
    packs: PackView | None = None  # on CUDA: its threads have packs of elements
    grid: tuple[str, ...] = ()  # on CUDA: how many blocks cover `threads`
    empty_tests: tuple[str, ...] = ()  # on CUDA: the conditions under which there are no threads
    checks_grid: bool = False  # `covering_blocks` checks the number of blocks
    overflows: tuple[str, ...] = ()  # the conditions under which 64 bits may not hold `threads`
    headers: frozenset[str] = frozenset()  # that the bodies of the kernel and its functions need
    bound_headers: frozenset[str] = frozenset()  # that the conditions in the launcher need
    takes_strides: bool = False  # its launcher takes strides of arrays
    launch_headers: frozenset[str] = frozenset()  # that the types of the launcher's arguments need

    @property
    def declaration_headers(self) -> frozenset[str]:
        """The headers that the launcher's declaration needs, with those of the defaults in it."""
        has_nonfinite = any(argument.is_nonfinite for argument in self.launch_arguments)
        return self.launch_headers | ({MATH} if has_nonfinite else frozenset())

    @property
    def template(self) -> tuple[Argument, ...]:
        """The launcher's template parameters; none for a plain function."""
        return (*self.constexprs, *typenames(self.types))

    @property
    def kernel_template(self) -> str:
        """`template <int tile, typename T, bool has_bias, typename index_t>`; empty for a plain function."""
        index = typenames(("index_t",)) if self.is_template else ()
        packs = self.packs.parameters if self.packs else ()
        return template_head((*packs, *self._template_of_choice, *index))

    @property
    def choice_template(self) -> str:
        """The head of a launcher that is told which arrays are given, as the kernel is."""
        return template_head(self._template_of_choice)

    @property
    def _template_of_choice(self) -> tuple[Argument, ...]:
        return (*self.template, *(Argument(flag, "bool") for _, flag in self.optional))

    @property
    def launch_name(self) -> str:
        """The launcher, or the template that the launchers call."""
        return f"launch_{self.name}" if self.template else f"{self.op}_launch"

    @property
    def launch_function(self) -> str:
        """The function that launches on a grid: `launch_name`, or what it calls once it knows the choice."""
        return f"launch_{self.name}_given" if self.optional else self.launch_name

    @property
    def launch_template(self) -> str:
        return template_head(self.template)

    @property
    def admitted(self) -> tuple[str, ...]:
        """A sentence for each template parameter, with its values in the instances, and one about null pointers."""
        columns = zip(*(overload.types for overload in self.overloads), strict=True)
        types = zip(self.types, columns, strict=True)
        sentences = tuple(f"{name} is {listed(dict.fromkeys(values))}." for name, values in types if self.choices)
        return (*self.admitted_values, *sentences, *self._about_null)

    @property
    def admitted_values(self) -> tuple[str, ...]:
        """A sentence for each constexpr."""
        columns = zip(*self.choices, strict=True)
        return tuple(
            f"{constexpr.name} is {listed(dict.fromkeys(values))}."
            for constexpr, values in zip(self.constexprs, columns, strict=False)
        )

    @property
    def declared_sentences(self) -> tuple[str, ...]:
        """The sentences for a header, where each type has an overload."""
        return (*self.admitted_values, *self._about_null, *self._about_rows)

    @property
    def _about_rows(self) -> tuple[str, ...]:
        """What a caller in C++ must see to, since launchers do not test it; in lines of a comment."""
        if not self.in_rows:
            return ()
        what = (
            f"Whole rows of {listed(self.in_rows, 'and')} are accessed at once: these arrays must be aligned to a row"
        )
        return tuple(wrap(f"{what}, and its length must divide their last extent.", 117))

    @property
    def _about_null(self) -> tuple[str, ...]:
        """`a and b may be null: the kernel has 4 instances.`, of all widths, types and values together."""
        if not self.optional:
            return ()
        names = listed((name for name, _ in self.optional), "and")
        widths = 2 if self.is_template and self.fits else 1
        count = 2 ** len(self.optional) * max(1, len(self.overloads) * len(self.choices)) * widths
        return (f"{names} may be null: the kernel has {count} instances.",)

    def template_arguments(self, *index: str, packs: tuple[str, ...] = ("1", "1")) -> str:
        """`<tile, T, int>`; of a kernel that computes packs, with their width and count, `<4, 1, T>`."""
        packs = packs if self.packs else ()
        names = (*packs, *(parameter.name for parameter in self._template_of_choice), *index)
        return f"<{', '.join(names)}>" if names else ""

    @property
    def launcher(self) -> str:
        """`launch_name` as called by the overload without a grid: C++ deduces types, but not values."""
        return with_values(self.launch_name, (argument.name for argument in self.constexprs))

    @property
    def shared_requests(self) -> tuple[tuple[tuple[str, ...], str], ...]:
        """For each kernel that may run, its index type and the test in front of `allow_shared`."""
        types = (("int",), ("int64_t",)) if self.fits else (("int",),)
        test = f"{self.shared_limit_condition} && " if self.shared_limit_condition else ""
        return tuple((index if self.is_template else (), test) for index in types)

    @property
    def stream_parameters(self) -> tuple[str, ...]:
        """The last parameters of CUDA's launchers."""
        return ("cudaStream_t stream", *(("int64_t* max_blocks",) if self.syncs_grid else ()))

    @property
    def bounds(self) -> str:
        """`__launch_bounds__(256, 2) `, before the kernel's name; empty where there are none."""
        return f"__launch_bounds__({', '.join(map(str, self.launch_bounds))}) " if self.launch_bounds else ""

    @property
    def index_parameters(self) -> tuple[str, ...]:
        return tuple(f"int64_t {loop.name}" for loop in self.indices)

    @property
    def launch_parameters(self) -> tuple[str, ...]:
        memory = ("unsigned char* shared_memory",) if self.runs_whole_blocks and self.shared_bytes else ()
        barrier = ("GridBarrier& grid_barrier",) if self.syncs_grid else ()
        return (*memory, *barrier, *(f"Dim3 {name}" for name in self.launch))

    @property
    def launch_values(self) -> str:
        """The arguments for `launch_parameters` in the CPU's launcher, whose parameters are `grid` and `block`."""
        launcher_names = {"blockDim": "block", "gridDim": "grid"}
        memory = ", shared_memory.data()" if self.runs_whole_blocks and self.shared_bytes else ""
        barrier = ", grid_barrier" if self.syncs_grid else ""
        return memory + barrier + "".join(f", {launcher_names.get(name, name)}" for name in self.launch)

    @property
    def kernel_call(self) -> str:
        return ", ".join(self.passed)

    @property
    def passed(self) -> tuple[str, ...]:
        """The arguments in a call of the kernel, in the launcher."""
        launched = (*self.launch_arguments, *(value.argument for value in self.computed))
        by_name = {argument.name: argument for argument in launched}
        return tuple(self._passed(argument, by_name.get(argument.name, argument)) for argument in self.kernel_arguments)

    @property
    def value_lines(self) -> tuple[str, ...]:
        """The lines of the launcher that compute numbers for the kernel."""
        return tuple(line for value in self.computed for line in value.lines)

    @property
    def entry_arguments(self) -> tuple[str, ...]:
        """On the CPU: the launcher's arguments, read through `arguments`; whether a number is given precedes it."""
        texts, place = [], 0
        for argument in self.launch_arguments:
            type_ = f"{argument.base}" if argument.is_optional else argument.type
            if argument.is_optional:
                given, value = (
                    f"*static_cast<{each}*>(arguments[{place + at}])" for at, each in enumerate(("bool", type_))
                )
                texts.append(f"{given} ? {argument.type}({value}) : std::nullopt")
            else:
                texts.append(f"*static_cast<{type_}*>(arguments[{place}])")
            place += 1 + argument.is_optional
        return tuple(texts)

    @property
    def may_throw(self) -> bool:
        """On the CPU: for a failed `assert`, too many threads, or for lack of memory or OS threads."""
        return bool(self.asserts or self.overflows or self.shared_bytes or self.syncs_grid or self.waits_anywhere)

    @property
    def launch_names(self) -> tuple[str, ...]:
        return tuple(argument.name for argument in self.launch_arguments)

    def _passed(self, argument: Argument, launched: Argument) -> str:
        """An argument in the call of the kernel: C++ narrows a double by itself, but not to a half."""
        if argument.presence_of:
            return f"{argument.presence_of}.has_value()"  # rule: optional-passed
        if launched.is_complex and launched.base != argument.base:
            return f"{argument.base}({argument.name})"
        value = f"{argument.name}.value_or({_ZEROS[launched.base]})" if launched.is_optional else argument.name
        is_double = launched.base == "double" and not launched.is_pointer
        if is_double and argument.base in self.types and ROUND_TO in self.helpers:
            return f"{ROUND_TO}<{argument.base}>({value})"
        return value

    def kernel_signature(self, head: str, *extra: str) -> str:
        return wrapped(head, (*(a.declaration for a in self.kernel_arguments), *extra))

    def launch_signature(self, head: str, *extra: str) -> str:
        return wrapped(head, (*(a.declaration for a in self.launch_arguments), *extra))

    def launch_definition(self, head: str, body: str, *extra: str) -> str:
        """A launcher. Parameters that its body does not read have no names there: compilers would warn of them."""
        words = frozenset(re.findall(r"(?<![.\w])\w+", body))
        parameters = (*(a.declaration for a in self.launch_arguments), *extra)
        return f"{wrapped(head, tuple(_unnamed(each, words) for each in parameters))}\n{body}"

    def declarations(self, returns: str, *extra: str) -> tuple[str, ...]:
        """The launchers in the header: for each set of dtypes a function, or a template over the constexprs."""
        head = template_head(self.constexprs)
        signatures = (
            wrapped(f"{returns} {self.op}_launch", (*(a.documented.declaration for a in arguments), *extra))
            for arguments in (tuple(each.launch_arguments for each in self.overloads) or (self.launch_arguments,))
        )
        return tuple(f"{head}\n{signature}".lstrip() for signature in signatures)

    def forwards(self, returns: str, *extra: str) -> tuple[Forward, ...]:
        """The launchers of a template, for each set of dtypes and each choice of values."""
        names = tuple(parameter.rsplit(" ", 1)[1] for parameter in extra)
        return tuple(
            Forward(
                ("template <>\n" if values else "")
                + wrapped(
                    with_values(f"{returns} {self.op}_launch", values),
                    (*(a.declaration for a in overload.launch_arguments), *extra),
                ),
                with_values(self.launch_name, values),
                (*(a.name for a in overload.launch_arguments), *names),
            )
            for overload, values in product(self.overloads, self.choices)
        )


def listed(words: Iterable[str], before_last: str = "or") -> str:
    """`a, b or c`."""
    *most, last = words
    return f"{', '.join(most)} {before_last} {last}" if most else last


def with_values(name: str, values: Iterable[str]) -> str:
    """`tiled_launch<16>`; the name alone without values."""
    listed_values = ", ".join(values)
    return f"{name}<{listed_values}>" if listed_values else name


def tables_of(kernel: ir.Kernel, dialect: Dialect) -> tuple[tuple[str, ...], frozenset[str]]:
    """The declarations of the tables that a kernel and its device functions read, and the headers that they need."""
    spellers = [Emitter(each, dialect, {}) for each in (kernel, *kernel.functions)]
    tables = tuple(
        speller.declaration(decl.name)
        for speller in spellers
        for decl in speller.kernel.array_decls
        if decl.space is ir.Space.CONSTANT
    )
    return tables, frozenset().union(*(headers_of_types(speller.types) | speller.headers for speller in spellers))


def helpers_of(kernel: ir.Kernel) -> tuple[str, ...]:
    """The helpers that a kernel and its device functions need."""
    return tuple(dict.fromkeys(name for each in (kernel, *kernel.functions) for name in each.helpers))


def _unnamed(parameter: str, words: frozenset[str]) -> str:
    """`int64_t /* m */` of `int64_t m`, unless its name is one of `words`."""
    type_, _, name = parameter.rpartition(" ")
    return parameter if name in words else f"{type_} /* {name} */"
