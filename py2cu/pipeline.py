"""The stages of the compiler in order: source → kernels → passes → texts.

    read_module → read_kernel → passes → Lowered ┬→ render for each target            → Translation
                                                 └→ render_for_calls for a target     → CallTranslation

Stages report errors and go on; all errors of a file are raised together. Nothing here needs torch.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, product
from typing import Final

from py2cu import ir
from py2cu.analysis.signatures import signature_of
from py2cu.collector import collector_paused
from py2cu.diagnostics import Reporter, TranslationError
from py2cu.frontend.backwards import check_backwards
from py2cu.frontend.kernel_reader import read_kernel
from py2cu.frontend.numba.jit import with_signature
from py2cu.frontend.source.chosen_kernels import chosen_kernels
from py2cu.frontend.source.reader import LAMBDA, KernelSource, Module, read_module
from py2cu.hosts.functions import host_sources
from py2cu.hosts.of_file import render_hosts
from py2cu.ir.abi.signature import Signature
from py2cu.ir.verify import Stage
from py2cu.options import NO_VALUES, KernelOptions, Values
from py2cu.passes.canonical.fix_row_lengths import fix_row_lengths
from py2cu.passes.canonical.lift_assertions import lift_assertions
from py2cu.passes.canonical.lift_atomics import lift_atomics
from py2cu.passes.canonical.name_strides import name_strides
from py2cu.passes.canonical.resolve_extents import resolve_extents
from py2cu.passes.canonical.uniquify_dimensions import uniquify_dimensions
from py2cu.passes.canonical.widen_floats import wide_variables, widen_floats
from py2cu.passes.canonical.widen_naturals import widen_naturals
from py2cu.passes.checks.barriers import check_barriers
from py2cu.passes.checks.cache_hints import check_cache_hints
from py2cu.passes.checks.definite_assignment import check_definite_assignment
from py2cu.passes.checks.dimensions import check_dimensions
from py2cu.passes.checks.effects import check_effect
from py2cu.passes.checks.endless_loops import check_endless_loops
from py2cu.passes.checks.evaluation_order import check_once, check_order
from py2cu.passes.checks.layouts import check_layouts
from py2cu.passes.checks.narrow_floats import check_narrow_floats
from py2cu.passes.checks.narrow_integers import warn_narrow_integers
from py2cu.passes.checks.negative_indices import note_negative_indices
from py2cu.passes.checks.operator_limits import check_operator_limits
from py2cu.passes.checks.optional_parameters import check_optional_parameters
from py2cu.passes.checks.packs import note_packs
from py2cu.passes.checks.performance import note_performance
from py2cu.passes.checks.powers import check_powers
from py2cu.passes.checks.row_width import check_row_widths
from py2cu.passes.compute_in_launcher import compute_in_launcher
from py2cu.passes.find_in_place_pairs import find_in_place_pairs
from py2cu.passes.find_independent_dims import find_independent_dims
from py2cu.passes.guards.early_return import add_guards
from py2cu.passes.infer_roles import infer_roles
from py2cu.passes.join_instances import refusals, uneven_arrays
from py2cu.passes.load_rows import load_rows
from py2cu.passes.lowering.evaluate_once import evaluate_once
from py2cu.passes.lowering.flatten_subscripts import flatten_subscripts
from py2cu.passes.lowering.identifiers import spell_identifier
from py2cu.passes.lowering.index_arithmetic import flatten_indices
from py2cu.passes.lowering.integer_quotients import divide_integers
from py2cu.passes.lowering.integer_widths import choose_integer_widths, with_common_bounds
from py2cu.passes.lowering.loops import lower_loops
from py2cu.passes.lowering.make_complex import make_complex
from py2cu.passes.lowering.narrow_floats import narrow_floats
from py2cu.passes.lowering.operators import lower_semantics
from py2cu.passes.lowering.pass_extents import pass_extents
from py2cu.passes.lowering.shared_layout import lay_out_shared_memory
from py2cu.passes.lowering.split_tuples import split_tuples
from py2cu.passes.lowering.widen_halves import widen_halves
from py2cu.passes.manager import Pass, Step, everywhere, passes, run_passes, show
from py2cu.passes.simplify.fold_constants import fold_constants
from py2cu.passes.simplify.merge_branches import merge_branches
from py2cu.passes.simplify.scale_quotients import scale_quotients
from py2cu.passes.typing.decide_dtypes import decide_dtypes
from py2cu.passes.typing.infer_types import infer_types
from py2cu.passes.typing.recover_errors import recover_type_errors
from py2cu.source import SourceFile, Span
from py2cu.targets.cuda.hide_negation import hide_negation
from py2cu.targets.lowered import FINISHES, PACKING, SEARCHES, SPLITTING, UNIQUIFY, YIELDS, Lowered, finish
from py2cu.threads import with_deep_stack
from py2cu.translation import TargetName, Translation

READ: Final = Step("read_kernel", Stage.UNTYPED)
# Passes that report errors. NAMES always runs. TYPES follows if the kernel was read without errors, else RECOVERY.
# EFFECTS runs if there is no error by then. So one run shows every error that does not depend on rejected code.
NAMES: Final = passes(
    Stage.UNTYPED,
    fix_row_lengths,
    check_optional_parameters,
    decide_dtypes,
    everywhere(lift_atomics),
    uniquify_dimensions,
    everywhere(resolve_extents),
    everywhere(check_definite_assignment),
)
TYPES: Final = passes(Stage.TYPED, infer_types)
# For `KernelOptions.float64`.
WIDENING: Final = passes(Stage.UNTYPED, everywhere(widen_floats))
WIDTHS: Final = passes(Stage.TYPED, everywhere(check_narrow_floats))
RECOVERY: Final = passes(Stage.UNTYPED, recover_type_errors)
EFFECTS: Final = passes(
    Stage.TYPED,
    check_row_widths,
    check_barriers,
    add_guards,
    infer_roles,
    check_cache_hints,
    check_operator_limits,
    check_dimensions,
    check_layouts,
    lift_assertions,
    check_order,
    everywhere(check_endless_loops),
    check_powers,
    warn_narrow_integers,
    find_independent_dims,
    find_in_place_pairs,
)
# An error, except for kernels of Numba, which may do nothing; a note for these, which count negative indices from the
# end; notes on performance, on request.
EFFECT: Final = passes(Stage.TYPED, check_effect)
WRAPPING: Final = passes(Stage.TYPED, note_negative_indices)
NOTES: Final = passes(Stage.TYPED, note_performance)
PACK_NOTES: Final = passes(Stage.LOWERED, note_packs)
# Rewrites of correct kernels into operations that C has.
LOWERINGS: Final = (
    *passes(
        Stage.TYPED,
        split_tuples,
        lay_out_shared_memory,
        lower_loops,
        evaluate_once,
        everywhere(make_complex),
        check_once,
        everywhere(fold_constants),
        scale_quotients,
        widen_naturals,
        everywhere(divide_integers),
        compute_in_launcher,
        name_strides,
        choose_integer_widths,
        load_rows,
        everywhere(flatten_subscripts),
        pass_extents,
        everywhere(widen_halves),
    ),
    *passes(
        Stage.LOWERED,
        everywhere(lower_semantics),
        narrow_floats,
        everywhere(merge_branches),
        hide_negation,
        flatten_indices,
    ),
)
STEPS: Final = (
    READ, *NAMES, *TYPES, *RECOVERY, *EFFECTS, *EFFECT, *WRAPPING, *NOTES, *LOWERINGS, *PACK_NOTES, *PACKING, *SEARCHES,
    *YIELDS, *SPLITTING, *FINISHES, UNIQUIFY,
)  # fmt: skip


def translate_file(
    file: SourceFile,
    only: str | None = None,
    targets: Iterable[TargetName] = TargetName,
    notes: bool = False,
    values: Values = NO_VALUES,
    signatures: Sequence[str] = (),
    namespace: str = "",
) -> Translation:
    """Translate every kernel of a file, or the one called `only`; with `notes`, report notes on performance.

    `values` gives, for `Constexpr[int]` parameters, the values to instantiate; `signatures` the types of kernels under
    Numba's `@cuda.jit`; `namespace` where the launchers are, "" for the global one.

    Raises:
        TranslationError: with all the errors of the file.
    """
    return replace(lower_file(file, only, notes, values, signatures), namespace=namespace).files(targets)


@with_deep_stack
@collector_paused()
def lower_file(
    file: SourceFile,
    only: str | None = None,
    notes: bool = False,
    values: Values = NO_VALUES,
    signatures: Sequence[str] = (),
) -> Lowered:
    """What `translate_file` renders; raises what it raises."""
    reporter = Reporter(file)
    module = read_module(file, reporter)
    hosts = host_sources(module, only) if module else ()
    chosen = chosen_kernels(module, only, reporter, is_required=not hosts) if module else ()
    sources = [(with_signature(source, signatures), None) for source in chosen]
    done = _lower_all(file.stem, module, sources, reporter, values, notes)
    if module is None or not hosts:
        return done
    known = {signature.name: signature for signature in done.signatures}
    find = functools.partial(_signature_in, module, known, reporter, values)
    return replace(done, host=render_hosts(done.name, module, hosts, find, reporter))


@with_deep_stack
@collector_paused()
def lower_function(
    file: SourceFile,
    line: int,
    name: str,
    options: KernelOptions,
    live: Mapping[str, object],
    values: Values = NO_VALUES,
    defaults: Mapping[str, object] | None = None,
) -> Lowered:
    """The function `name` at `line`, with the options, globals and defaults of the live function.

    `values` gives, for `Constexpr[int]` parameters, the values to instantiate.

    Raises:
        TranslationError: with all the errors of the function.
    """
    reporter = Reporter(file)
    is_decorated = file.line(line).lstrip().startswith("@")  # `read_module` reads these anyway
    module = read_module(file, reporter, live, None if is_decorated else name)
    source = module.function_at(line, name) if module and name != LAMBDA else None
    if source is None and not reporter.failed:
        what = "a lambda cannot be a kernel" if name == LAMBDA else f"no function `{name}` begins here"
        reporter.error("P107", what, Span(line, 0, line, 1), "write the kernel as a function, with `def`")
    sources = [(source, options)] if source else []
    lowered = _lower_all(options.name or name, module, sources, reporter, values, defaults=defaults)
    return replace(lowered, namespace=options.namespace)


def _lower_all(
    name: str,
    module: Module | None,
    sources: Iterable[tuple[KernelSource, KernelOptions | None]],
    reporter: Reporter,
    values: Values,
    notes: bool = False,
    defaults: Mapping[str, object] | None = None,
) -> Lowered:
    assert module is not None or reporter.failed
    families = tuple(
        compile_kernel(module, *source, reporter, values, notes, defaults) for source in sources if module is not None
    )
    if reporter.failed:
        raise TranslationError(reporter.sorted)  # rule: refused-raises
    for first, *_ in families if notes else ():
        run_passes(PACK_NOTES, first, reporter)
    finished = finish(families, reporter)
    operators = tuple(map(signature_of, finished))
    signatures = tuple(signature.called() for signature in operators)
    if module is not None and all(options is None for _, options in sources):  # a call checks its backwards itself
        names = (source.function.name.value for source, _ in sources)
        chosen = dict(zip(names, signatures, strict=True))
        check_backwards(module, chosen, functools.partial(_signature_in, module, chosen, reporter, values), reporter)
    return Lowered(spell_identifier(name), families, finished, operators, signatures, reporter.sorted, reporter)


def _signature_in(
    module: Module, known: Mapping[str, Signature], reporter: Reporter, values: Values, source: KernelSource
) -> Signature | None:
    """The signature of a kernel of the file, among `known` or not; None if the kernel has errors."""
    if source.function.name.value in known:
        return known[source.function.name.value]
    own = Reporter(reporter.file)
    family = compile_kernel(module, source, None, own, values)
    return None if own.failed else signature_of(finish((family,), own)[0]).called()


def compile_kernel(
    module: Module,
    source: KernelSource,
    options: KernelOptions | None,
    reporter: Reporter,
    values: Values = NO_VALUES,
    notes: bool = False,
    defaults: Mapping[str, object] | None = None,
) -> ir.Instances:
    """Read and lower one function; its errors go to `reporter`.

    A generic kernel has an instance for every dtype that its annotation admits and for which its body has no error.
    """
    first = Reporter(reporter.file)
    kernel = read_kernel(module, source, first, options, values, defaults)
    is_wide = options is not None and options.float64
    is_numba = source.is_numba or (options is not None and options.signature is not None)
    wanted = (*(WRAPPING if is_numba else EFFECT), *(NOTES if notes else ()))
    while True:
        attempts = {
            dtypes: _lower(instance, replace(first, diagnostics=dict(first.diagnostics)), wanted, is_wide=is_wide)
            for dtypes, instance in _instances(kernel, is_wide=is_wide)
        }
        family = tuple(instance for instance, local in attempts.values() if not local.failed)
        if not (uneven := uneven_arrays(family) - kernel.passed):
            break
        kernel = kernel.having(passed=kernel.passed | uneven)
    locals_ = [local for _, local in attempts.values()]
    reporter.diagnostics |= next((local for local in locals_ if not local.failed), locals_[0]).diagnostics
    failed = {dtypes: local for dtypes, (_, local) in attempts.items() if local.failed}
    refused = refusals(kernel, failed, reporter, notes) if family else ()
    return tuple(instance.having(refused=refused) for instance in with_common_bounds(family))


def _instances(kernel: ir.Kernel, *, is_wide: bool) -> Iterable[tuple[tuple[str, ...], ir.Kernel]]:
    """The instances with the names of their dtypes."""
    variables = wide_variables(kernel) if is_wide else kernel.variables
    for dtypes in product(*(variable.admits for variable in variables)):
        yield tuple(dtype.name for dtype in dtypes), kernel.instance(variables, dtypes)


def _lower(kernel: ir.Kernel, local: Reporter, wanted: Iterable[Pass], *, is_wide: bool) -> tuple[ir.Kernel, Reporter]:
    """Run the passes on `kernel`; the reporter that comes back holds what they reported."""
    show(READ, None, kernel, local)
    names, types = ((*WIDENING, *NAMES), (*TYPES, *WIDTHS)) if is_wide else (NAMES, TYPES)
    kernel = run_passes(chain(names, RECOVERY if local.failed else types), kernel, local)
    if not local.failed:
        kernel = run_passes(chain(EFFECTS, wanted), kernel, local)
    if not local.failed:
        kernel = run_passes(LOWERINGS, kernel, local)
    return kernel, local
