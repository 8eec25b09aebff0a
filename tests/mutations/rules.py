"""The rules of the language, the source that keeps each, and the cases that fail without it.

A row's text stands once in the package, in whichever file: rows outlive a move. `cpu:`, `emulated:` and `sanitized:`
name a kernel case, or one kernel of it, that is compared with its Python: as CPU text, as CUDA text compiled for the
CPU, as CPU text that stops at undefined behaviour. `kept:` compares a case with the text that is kept, `refused:` an
error case with what is said. Anything else is a test.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

FOLDERS: Final = {
    "cpu": "kernels",
    "emulated": "kernels",
    "optimised": "kernels",
    "sanitized": "kernels",
    "kept": "kernels",
    "refused": "errors",
}


@dataclass(frozen=True)
class Mutation:
    """`old`, which keeps `rule`, becomes `new`: one of `cases` must fail."""

    rule: str
    old: str
    new: str
    cases: tuple[str, ...]


def find(mutation: Mutation, root: Path) -> list[Path]:
    """The files of the package, and the templates, that hold the text, once for every place."""
    places = []
    for path in [*sorted((root / "py2cu").rglob("*.py")), *sorted((root / "templates").rglob("*.j2"))]:
        places += [path.relative_to(root)] * path.read_text(encoding="utf-8").count(mutation.old)
    return places


def _rule(rule: str, *mutations: tuple[str, str, str]) -> tuple[Mutation, ...]:
    return tuple(Mutation(rule, old, new, tuple(cases.split())) for old, new, cases in mutations)


FORMULAS: Final = (
    "tests/unit/simulator/test_functions.py::"
    "test_formulas_of_several_steps_are_torchs_for_halves_and_whole_numbers[torch.special.expit1-"
)

MUTATIONS: Final = (
    *_rule(
        "Python floats are doubles",
        (
            'return {Kind.BOOL: "bool", Kind.FLOAT: "double", Kind.COMPLEX: C128.c}[kind]',
            'return {Kind.BOOL: "bool", Kind.FLOAT: "float", Kind.COMPLEX: C128.c}[kind]',
            "cpu:casts",
        ),
        ("len(targets) == uses[name] and len(set(targets)) == 1 and", "", "cpu:scalars"),
        ("if len(targets) == uses[name] and len", "if len", "cpu:number_types.floats"),
    ),
    *_rule(
        "Python numbers are weak",
        (
            "weak = promote_weak(dtype, kind)",
            "weak = dtype if kind is not Kind.FLOAT else F64",
            "cpu:promotion",
        ),
        ("if element.kind >= kind:", "if False:", "tests/unit/simulator/test_elements.py"),
        (
            "return {Kind.INT: I64, Kind.FLOAT: DEFAULT_FLOAT}[kind]",
            "return element",
            "tests/unit/simulator/test_elements.py",
        ),
    ),
    *_rule(
        "promotion is torch's",
        ("common = promote(left, right)", "common = left", "cpu:promotion"),
        (
            "return signed if signed.bits > unsigned.bits else _wider_signed(unsigned)",
            "return signed",
            "tests/unit/simulator/test_elements.py",
        ),
        ("return F32  # neither holds the other's values", "return a", "tests/unit/simulator/test_elements.py"),
    ),
    *_rule(
        "elements wrap",
        (
            "if isinstance(type_, ir.ElementType) and type_.dtype.kind is Kind.INT and OPERATORS[expr.op].wrapping:",
            "if False:",
            "cpu:integer_wrap",
        ),
        (
            "return wrapping(expr)\n        zero = ",
            "return expr\n        zero = ",
            "cpu:integer_wrap",
        ),
        (
            "case ir.ElementType(dtype=dtype) if dtype.variable or (dtype.bits < 32 and not dtype.signed):",
            "case ir.ElementType(dtype=dtype) if False:",
            "cpu:number_types.integers",
        ),
        (
            "if not self.may_overflow(expr, dtype):\n            return expr",
            "if dtype.bits >= 32:\n            return expr",
            "sanitized:integer_wrap sanitized:bits",
        ),
        (
            "if not self.may_overflow(expr, dtype):",
            "small = replace(expr, left=self.chained(expr.left), right=self.chained(expr.right))\n"
            "        if not self.may_overflow(small, dtype):\n            return small\n"
            "        if not self.may_overflow(expr, dtype):",
            "cpu:integer_wrap.plus_nothing",
        ),
        ('return expr if fits else self.helper("wrapping_shift", expr)', "return expr", "tests/test_undefined.py"),
    ),
    *_rule(
        "a grid is whole or an error",
        ("return blocks <= INT32_MAX ?", "return true ?", "tests/test_launch_grids.py"),
        ("if _fits_dim3(kernel, extent, block):", "if True:", "tests/test_launch_grids.py"),
        (
            "for text, fits_int64 in texts if not fits_int64)\n\n\ndef",
            "for text, fits_int64 in texts if False)\n\n\ndef",
            "tests/test_launch_grids.py",
        ),
        ("self.bounds += self._steps(index.extent)", "pass", "tests/test_launch_grids.py"),
        ("_refuse_unlaunchable(signature, (x, y, z), least=0)", "", "tests/test_launch_grids.py"),
    ),
    *_rule(
        "Python integers are exact",
        (
            "if range_.bound is None:\n            return ir.Width.LONG",
            "if range_.bound is None:\n            return ir.Width.INT",
            "emulated:tuples",
        ),
        (
            "if sum(n * math.prod(most[name] for name in term) for term, n in range_.bound.items()) <= INT_MAX:",
            "if True:",
            "cpu:loop_carried_integer emulated:loop_carried_integer",
        ),
        (
            'if max(_least_width(left), _least_width(right)) < width and expr.op != "//":',
            "if False:",
            "kept:launch_parameters",
        ),
        ("self.bounds.append(range_.bound)\n", "pass\n", "tests/test_goldens.py"),
        ("if width is ir.Width.INT and self.ranges.of(expr).high <= INT_MAX:", "if True:", "kept:wide_strides"),
        (
            "return expr\n                return widen_operands(",
            "return expr\n                return (",
            "kept:wide_strides",
        ),
        ("if known - 1 > INT_MAX:\n            return ir.Width.LONG", "", "kept:wide_constants"),
        ("known = max(known, self._constant_size(dims))", "pass", "kept:wide_constants"),
        ("bound.get((), 0) > INT_MAX else ir.INDEX", "False else ir.INDEX", "kept:wide_constants"),
        ("and self.ranges.of(expr.right).high >= I32.bits:", "and False:", "kept:shifts"),
        ("and [*assigned_names(body)].count(stmt.name) == 1", "and True", "kept:while_bounds"),
        ("bound = other.bound if known.is_natural and", "bound = other.bound if", "kept:while_bounds"),
        (
            "if not isinstance(value, int) or -(2**63) <= value < 2**64:",
            "if True:",
            "refused:constants_beyond_64_bits refused:constant_beyond_uint64",
        ),
    ),
    *_rule(
        "// and % floor",
        ("if a.is_natural and b.is_natural and not is_generic(type_):", "if True:", "cpu:division"),
        (
            "return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;",
            "return quotient;",
            "cpu:division",
        ),
        ("if (rest != 0 && (b < 0) != (rest < 0)) quotient -= 1;", "", "cpu:division"),
        ("return (b < 0) != (rest < 0) ? rest + b : rest;", "return rest;", "cpu:division"),
        ("return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;", "return rest;", "cpu:division"),
        ("if (rest == 0) return copysign(rest, b);", "", "cpu:division"),
    ),
    *_rule(
        "/ is true division",
        ('if expr.op == "/" and integers:', "if False:", "cpu:division"),
        (
            "ir.ElementType(DEFAULT_FLOAT) if isinstance(type_, ir.ElementType) else ir.PY_FLOAT\n            left",
            "ir.PY_FLOAT\n            left",
            "cpu:number_types.floats",
        ),
    ),
    *_rule(
        "** is Python's",
        ("and _is_complex_in_python(left, right):", "and False:", "refused:complex_power"),
        (
            "if not isinstance(right, ir.Constant) or right.value >= 0:",
            "if True:",
            "refused:negative_power",
        ),
        (
            'return self.helper("int_pow", expr)',
            'return Call("math.pow", (expr.left, expr.right), expr.span, expr.type)',
            "cpu:powers",
        ),
        ("if not ranges.of(exponent).is_natural:", "if False:", "refused:negative_power"),
        (
            "return base**exponent if 0 <= exponent * math.log2(base) <= 64 else math.inf",
            "return base",
            "kept:powers_of_computed",
        ),
        ("if (exponent % 2 != 0) result *= factor;", "result *= factor;", "cpu:powers"),
    ),
    *_rule(
        "rounded quotients",
        (
            "ir.Constant(by - 1, b.span, ir.PY_INT)",
            "ir.Constant(by, b.span, ir.PY_INT)",
            "cpu:rounded_quotients.constants",
        ),
        (
            "return a % b != 0 && (a < 0) == (b < 0) ? quotient + 1",
            "return a % b != 0 ? quotient + 1",
            "cpu:rounded_quotients.arguments",
        ),
        (
            "if not (a.type == b.type == ir.PY_INT and ranges.counts_elements(a, _MANY)):",
            "if False:",
            "kept:rounded_quotients",
        ),
    ),
    *_rule(
        "what is known of numbers",
        (
            "elif parameter.name not in self.names and not isinstance(parameter.type, ir.ArrayType):",
            "elif isinstance(parameter.type, ir.ElementType):",
            "kept:ranges_of_floats",
        ),
        (
            "if all(represents(dtype, value) for dtype in dtypes) else rounded",
            "if True else rounded",
            "cpu:ranges_of_floats.rounded_constant",
        ),
        (
            "if ir.kind_of(target) is Kind.BOOL:\n            return TRUTH",
            "",
            "cpu:ranges_of_floats.truth_of_a_fraction",
        ),
        ("if exact.high <= 0 else high)", "if exact.high <= 0 else high, exact.bound)", "kept:ranges_of_floats"),
        ("loops if is_else else around", "around", "refused:negative_power"),
        ("math.inf if is_far else high, bound", "high, bound", "kept:far_numbers"),
        (
            'return kernel.c_name(name) if name in naturals else f"',
            'return kernel.c_name(name) if True else f"',
            "tests/test_emulated_cuda.py::test_numbers_of_a_call_may_be_any",
        ),
        ("if 0 < by <= INT_MAX:", "if 0 < by:", "cpu:far_numbers.far_shares"),
        ("if {left, right} <= naturals:", "if True:", "kept:far_numbers"),
        (
            "return values if (low, high) == (values.low, values.high) else Interval(low, high, values.bound)",
            "return values",
            "tests/test_kernel_cases.py::test_translation_is_as_kept[far_numbers]",
        ),
    ),
    *_rule(
        "calls that do something are made once, in order",
        (
            "if (effect.reads | effect.loads) & changed or effect.stores & (changed | read):",
            "if (effect.reads | effect.loads) & changed and not effect.stores:",
            "cpu:acting_calls.swapped",
        ),
        (
            "if at in early or not all(commute(effects[at], other) for other in later):",
            "if at in early:",
            "cpu:acting_calls.before_others",
        ),
        ("if not calls or isinstance(index, ir.Constant | ir.Name):", "if True:", "cpu:acting_calls.in_an_index"),
        (
            "if all_of_them or p.name in used | with_calls)",
            "if all_of_them or p.name in used)",
            "cpu:acting_calls.unused",
        ),
        ("if isinstance(node, ir.DeviceCall) and node.function in effectful:", "if False:", "refused:call_made_once"),
        ("            self._check_no_call(other)\n", "", "refused:call_made_once"),
        ("        self._check_no_call(value)\n", "", "refused:call_made_once"),
    ),
    *_rule(
        "and, or, chains: short-circuit, once, value-returning",
        ('{"and": "&&", "or": "||"}', '{"and": "&", "or": "|"}', "cpu:boolean_operators"),
        ("if not (isinstance(expr, ir.BoolOp) and _is_choice(expr)):", "if True:", "cpu:boolean_operators"),
        (
            'then, orelse = (expr.right, expr.left) if expr.op == "and" else (expr.left, expr.right)',
            "then, orelse = expr.left, expr.right",
            "cpu:boolean_operators",
        ),
        ("test = ir.unconverted(expr.left)", "test = expr.left", "cpu:boolean_operators.before_it_meets"),
        (
            'result = link if result is None else ir.BoolOp("and", result, link, scope.span_of(node))',
            "result = link",
            "cpu:comparisons",
        ),
        ("if is_duplicable(middle) or _is_index_sum(middle):", "if True:", "kept:evaluated_once"),
        (
            "return replace(expr, left=left if is_duplicable(value) else _with_core(left, self.local(value)))",
            "return replace(expr, left=left)",
            "kept:evaluated_once",
        ),
    ),
    *_rule(
        "range",
        ("if loop.var in self.used_elsewhere or loop.type", "if loop.type", "cpu:range_variable"),
        ("var=counter.id, type=ir.PY_INT, body", "var=counter.id, body", "cpu:range_variable"),
        ("direction = 1 if step.low > 0 else -1 if step.high < 0 else 0", "direction = 1", "cpu:range_variable"),
        ("if not bound.acts and commute(bound, rounds):", "if not bound.acts:", "cpu:range_variable"),
        ("if not bound.acts and commute(bound, rounds):", "if commute(bound, rounds):", "cpu:order_of_calls"),
        ("shared = set(loops) & assigned", "shared = set()", "cpu:range_variable"),
        ("if _reads(body, var) > inside or bounds or any", "if bounds or any", "cpu:range_variable"),
    ),
    *_rule(
        "ptxas forgets no minus",
        ("if not any(map(_has_extremum, bodies)) or", "if True or", "kept:negated"),
        ("if function in _EXTREMA and _is_integer(type_):", "if function in _EXTREMA:", "kept:negated"),
        ("if then in _compared(test) or orelse in _compared(test):", "if False:", "kept:negated"),
    ),
    *_rule(
        "natural numbers are exact to 64 bits",
        ("return self.exceeds(expr) and self.bounds.of(expr) is not Sign.MIXED", "return False", "cpu:naturals.random"),
        (
            "case ir.Binary(op=op, left=left, right=right) if op in _BY_SIGN:",
            "case _ if False:",
            "cpu:naturals.uniform",
        ),
        ("and value.type == ir.PY_INT and value.value.type", "and value.value.type", "cpu:naturals.beside_elements"),
        ("case ir.Convert(value=value) if self.is_wide(value)", "case ir.Convert() if False", "cpu:naturals"),
        ("if not is_natural(self.bounds.of(operand)):", "if False:", "refused:natural_beside_negative"),
        ("return is_bounded and multiplies", "return False", "kept:naturals"),
        (
            "self._by_id[id(expr)] = _join(size, self._by_id.get(id(expr), 0))",
            "self._by_id[id(expr)] = size",
            "kept:naturals",
        ),
        ("scope |= _merged(scope, otherwise)", "pass", "kept:naturals"),
        ("assigned[name] = _joined(sizes, assigned.get(name, ()))", "assigned[name] = sizes", "kept:naturals"),
        ("most = (1 << max(most.bit_length(), other.bit_length())) - 1", "most = max(most, other)", "kept:naturals"),
        ("and _masks_64_bits(body)):", "):", "refused:constants_beyond_64_bits"),
        (
            "if size is Sign.SIGNED and expr.type == ir.PY_INT and self._is_natural(expr):",
            "if False:",
            "cpu:naturals_joined",
        ),
        (
            "self._recursion = _merged(self._recursion, {key: (), **called})",
            "self._recursion |= {key: (), **called}",
            "kept:naturals_joined",
        ),
        (
            "counter = max(start, stop - 1)",
            "counter = 0",
            "kept:naturals",
        ),
        (
            "(entry, Sign.NATURAL) if round_ == _ROUNDS else (after, Sign.MIXED)",
            "(after, Sign.NATURAL)",
            "cpu:naturals_joined",
        ),
        ("if row.of_integers or row.range is Bound.MAGNITUDE:", "if False:", "cpu:naturals_joined"),
        (
            "return size is Sign.MIXED or (isinstance(size, int)",
            "return (isinstance(size, int)",
            "refused:naturals_of_any_sign",
        ),
        (
            "return Sign.MIXED if any(map(exceeds_int64, parts)) else Sign.SIGNED",
            "return Sign.SIGNED",
            "refused:naturals_of_any_sign",
        ),
        ("return Sign.MIXED if is_wide else Sign.NATURAL", "return Sign.NATURAL", "refused:naturals_of_any_sign"),
        (
            "min((size for size in naturals if isinstance(size, int)), default",
            "min(naturals, key=_greatest, default",
            "cpu:naturals",
        ),
        (
            "return self.exact(expr) if self.is_masked(expr) else expr",
            "return self.exact(expr)",
            "refused:naturals_of_any_sign",
        ),
        ("return operand is test", "return False", "refused:naturals_of_any_sign"),
        ("return isinstance(expr, ir.Compare | ir.BoolOp) or", "return False or", "refused:naturals_of_any_sign"),
        ("for bound in filter(self.is_wide, (start, stop, step)):", "for bound in ():", "refused:naturals_in_int64"),
        (
            'return op in _BY_SIGN or (op == "**" and operand is expr.right)',
            "return op in _BY_SIGN",
            "refused:naturals_in_int64",
        ),
        (
            "return function in ROWS and ROWS[function].rule is not Rule.BITS",
            "return False",
            "refused:naturals_in_int64",
        ),
        ("ROWS[function].rule is not Rule.BITS", "True", "cpu:naturals_joined"),
    ),
    *_rule(
        "the simulator reports Python integers that leave 64 bits, except where uint64 or a mask keeps them exact",
        (
            "if not LONG_LOW <= value <= LONG_HIGH and not THREAD.takes_uint64:",
            "if not LONG_LOW <= value <= LONG_HIGH:",
            "tests/unit/simulator/test_large_integers.py",
        ),
        (
            "self.places[expr.span] = self.places.get(expr.span, True) and (masked or self.is_wide(expr))",
            "self.places[expr.span] = True",
            "tests/unit/simulator/test_large_integers.py",
        ),
        ("self.places.get(expr.span, True) and (masked", "(masked", "tests/unit/simulator/test_large_integers.py"),
        ("(masked or self.is_wide(expr))", "self.is_wide(expr)", "tests/unit/simulator/test_large_integers.py"),
        (
            ".encode()[:column].decode()) for at",
            "[:column]) for at",
            "tests/unit/simulator/test_simulate.py",
        ),
        ("return _TRUTHS[plain(a, b)]", "return plain(a, b)", "tests/unit/simulator/test_large_integers.py"),
        (
            "return value if THREAD.integer is int else _TRUTHS[value]",
            "return value",
            "tests/unit/simulator/test_large_integers.py",
        ),
        (
            "if value.__class__ is int:\n        check_64_bits(",
            "if False:\n        check_64_bits(",
            "tests/unit/simulator/test_large_integers.py",
        ),
    ),
    *_rule(
        "tuples are compared number by number",
        (
            'ir.BoolOp("and" if op == "==" else "or", a, b, span), tests',
            'ir.BoolOp("and", a, b, span), tests',
            "cpu:tuples_compared.compared",
        ),
        (
            "ir.Constant((len(some) == len(others)) is (op ==",
            "ir.Constant(True is (op ==",
            "cpu:tuples_compared.compared",
        ),
        ("is_one = isinstance(a, ir.Name) and", "is_one = False and", "cpu:tuples_compared.greatest"),
        (
            "ir.Constant(COMPARISONS[op](len(some), len(others)), span)",
            "ir.Constant(True, span)",
            "cpu:tuples_compared.compared",
        ),
        ("_compare_items(op[0], a, b, span),", "_compare_items(op, a, b, span),", "cpu:tuples_compared.compared"),
        (
            'if op in ("==", "!="):\n            return ir.Constant(op == "!=", span)',
            'if op in ("==", "!="):\n            return ir.Constant(True, span)',
            "cpu:tuples_compared.compared",
        ),
    ),
    *_rule(
        "gcc vectorizes no search wrongly",
        ("    if not found:", "    if True:", "optimised:searches.nearest"),
        ('return "then", value', 'return "", stmt.value', "optimised:searches.before"),
        ('return "orelse", value', 'return "", stmt.value', "optimised:searches.kept"),
        ("if branch:\n        assert", "if False:\n        assert", "optimised:searches.before"),
        (
            'Binary(op="+" | "-", left=inner, right=ir.Constant()):',
            'Binary(op="/", left=inner):',
            "optimised:searches.before",
        ),
        (
            "if isinstance(stmt, ir.Assign) and _is_affine(stmt.value",
            "if False and _is_affine(stmt.value",
            "optimised:searches.copied",
        ),
        ("is_conditional |= _may", "is_conditional |= False and _may", "optimised:searches.skipped"),
    ),
    *_rule(
        "a local of two types is joined or refused",
        (
            "inexact = [c for c in local.constants if not represents(dtype, c.value)]",
            "inexact = []",
            "refused:lists",
        ),
        ("if plain != {_plain(joined_type)}:", "if False:", "refused:local_rounded_early"),
        ('self.check_reaching("value", args[0])', "pass", "refused:local_rounded_early"),
        ('self.check_reaching("value", value)', "pass", "refused:local_rounded_early"),
        ("        and dtype == F32\n", "", "refused:lists"),
        ("if (local.computed and not rounds_at_use) or (is_result", "if (is_result", "refused:local_of_two_types"),
        ("rounds_at_use = dtype in (F32, F64) and", "rounds_at_use =", "refused:local_of_two_types"),
        ("dtype.variable is None and holds(I64, dtype)", "dtype.variable is None", "refused:local_of_two_types"),
        (
            "if not (joined == numbers or (op",
            "if False and (joined == numbers or (op",
            "refused:integers_of_two_origins",
        ),
        ("joined == {reached} and numbers <= {ir.PY_INT, reached}", "True", "refused:integers_of_two_origins"),
        ("joined = join(local.type, type_)", "joined = local.type", "cpu:locals"),
        ("if local.clash is not None:", "if False:", "refused:unsigned_meets_signed"),
        (
            "            if reached is None:\n                continue",
            "            if True:\n                continue",
            "refused:other_type_on_a_path",
        ),
        ("    if rounded:\n", "    if False:\n", "refused:rounded_by_a_join"),
    ),
    *_rule(
        "a list that may change is no table",
        ("if node.value in self.lists and node not in self.read:", "if False:", "refused:list_of_the_module"),
        ("yield from ((name, stmt) for name in sorted(lists & words))", "yield from ()", "refused:list_of_the_module"),
        ("set() if self._has_rows(node) else {node}", "{node}", "refused:list_of_the_module"),
        (
            "all(repr(each) == text for each, text in lists)",
            "True",
            "tests/unit/call/test_redefinitions.py::test_a_list_that_is_changed_in_place",
        ),
    ),
    *_rule(
        "the bits of an element",
        ("if element.error or math.isnan(element.value):", "if False:", "cpu:bits_of_elements"),
        ("row.rule not in (Rule.CHOICE, Rule.VIEW)", "row.rule is not Rule.CHOICE", "cpu:bits_of_elements"),
        ("({self.bits_of(expr.args[0])})", "({self.expr(expr.args[0]).text})", "cpu:bits_of_elements"),
        ("elif target not in _VIEWED or target.bits != source.bits:", "elif False:", "refused:views_of_bits"),
    ),
    *_rule(
        "a conditional value, or a result, of two types",
        (
            "            if is_lossy(reached, type_, ir.PY_BOOL):\n                return reached",
            "            pass",
            "refused:conditional_value_of_two_types",
        ),
        (
            "for a in joined for b in types}",
            "for a in joined for b in sorted(types, key=str)[:1]}",
            "refused:conditional_value_of_two_types",
        ),
        (
            "any(is_lossy(each, narrow, type_) for each in possible_types(value, self.reaching))",
            "False",
            "kept:conditional_values_of_types",
        ),
        (
            "return not _is_exact(narrow) and (kind",
            "return (kind",
            "tests/test_kernel_cases.py::test_translation_is_as_kept[conditional_values_of_types]",
        ),
        (
            "args[each.name] if",
            "frozenset([each.type]) if",
            "tests/test_kernel_cases.py::test_translation_is_as_kept[results_of_two_types]",
        ),
        ('self.check_reaching("pass", arg)', "pass", "refused:conditional_value_of_two_types"),
        ('elif op == "pass" and reached == ir.PY_FLOAT:', "elif False:", "refused:float64_of_two_origins"),
        ("return by_type | ({ir.PY_FLOAT} & results)", "return by_type", "refused:float64_of_two_origins"),
        (
            "if mixed <= integers and (has_forgotten or not inferred.has_python_floats):",
            "if mixed <= integers:",
            "cpu:floats_of_two_origins.found_in_turns",
        ),
        (
            "return _plain(computed) == _plain(joined_type) or (",
            "return computed == joined_type or (",
            "kept:floats_of_two_origins",
        ),
        ('self.check_reaching("print", value)', "pass", "refused:conditional_value_of_two_types"),
    ),
    *_rule(
        "tuples: the right side first",
        (
            "changed |= {*named} if any(isinstance(node, cst.Call) for node in nodes) else {*named[:1]}",
            "pass",
            "cpu:tuples",
        ),
        ("(effect.reads | effect.loads) & changed or", "effect.reads & changed or", "cpu:tuples"),
    ),
    *_rule(
        "min, max, abs, round",
        ("return b < a ? b : a;", "return fmin(a, b);", "cpu:min_max_abs_round"),
        ("return b > a ? b : a;", "return fmax(a, b);", "cpu:min_max_abs_round"),
        (" if not _may_be_nan(arg))", ")", "cpu:min_max_abs_round"),
        ("        if row.rule is Rule.CHOICE:\n", "        if False:\n", "refused:choice_that_rounds"),
        (
            'Builtin(("builtins.round",), Rule.INTEGRAL, (1, 2), {"float": "rintf", "double": "rint"})',
            'Builtin(("builtins.round",), Rule.INTEGRAL, (1, 2), {"float": "roundf", "double": "round"})',
            "cpu:min_max_abs_round",
        ),
        (
            "if (below + above == 2 * scaled && error != 0) rounded = error > 0 ? above : below;",
            "",
            "cpu:math_more",
        ),
        ("return self.magnitude(expr, expr.type)", "return expr", "cpu:bits sanitized:bits"),
    ),
    *_rule(
        "int(x) and stores truncate as torch does",
        ("return self.truncate(expr, target)", "return expr", "cpu:unsigned.beyond"),
        (
            "return value < 0 ? static_cast<uint64_t>(static_cast<int64_t>(value)) : static_cast<uint64_t>(value);",
            "return static_cast<uint64_t>(static_cast<int64_t>(value));",
            "cpu:unsigned.beyond",
        ),
        ("trunc, wraps = float.__trunc__, not", "trunc, wraps = float.__floor__, not", "cpu:integer_wrap"),
    ),
    *_rule(
        "negative indices",
        ("return add(dim, index)", "return index", "cpu:subscripts"),
        (
            'THREAD.report(f"a negative index of `{array}`", f"{index} on axis {axis}", is_open=True)',
            "pass",
            "tests/unit/simulator/test_simulate.py",
        ),
        (
            "not -extent.value <= at < extent.value:",
            "not at < extent.value:",
            "refused:negative_index_past_extent",
        ),
        ("index if at is None or at >= 0 else", "index if True else", "tests/test_ir_cases.py"),
        ("if isinstance(constant, int) and constant < 0:", "if False:", "cpu:subscripts.computed"),
        ("first = count_back(self.stop, first)", "pass", "cpu:slices_from_the_end"),
        ("if not is_negative(first):", "if True:", "cpu:slices_from_the_end"),
        (
            "return at if at >= 0 else count_from_end(",
            "return at if True else count_from_end(",
            "cpu:slices_from_the_end",
        ),
    ),
    *_rule(
        "functions of float32 are float32's, within a tolerance",
        (
            '(arity, arity), {"float": f"{c}f", "double": c}, **fields)',
            '(arity, arity), {"float": c, "double": c}, **fields)',
            "kept:math_f32",
        ),
        (
            "return error + slack * (dtype.epsilon * abs(value) + _smallest(dtype))",
            "return 0.0",
            "cpu:math_f32.exponentials cpu:math_f32.whole",
        ),
        ("if error and math.isfinite(value) and", "if False and", "tests/unit/simulator/test_functions.py"),
        (
            "math.copysign(round_(float(value)), value)",
            "float(round_(float(value)))",
            "tests/unit/simulator/test_functions.py",
        ),
        ("SLACK_ULPS: Final = 8 ", "SLACK_ULPS: Final = 2**20 ", "tests/unit/check/test_compare.py"),
    ),
    *_rule(
        "a float's parts",
        ("if I32.low <= range_.low and range_.high <= I32.high:", "if True:", "cpu:float_parts.scaled"),
        ("copysign(a == trunc(a) ? T(0) : a - trunc(a), a)", "a - trunc(a)", "cpu:float_parts.parts"),
        ("_wide(arg) if _is_rounded(arg.type) else arg for arg", "_wide(arg) for arg", "kept:float_parts"),
        ("or (place and row.rule is Rule.SCALED)", "", "kept:float_parts"),
        (", range=(-1073.0, 1024.0)", "", "kept:float_parts"),
        ("_wide(arg) if _is_rounded", "_wide(arg) if not _is_rounded", "cpu:float_parts.halves"),
    ),
    *_rule(
        "multiply-add may be contracted",
        (
            "error = abs(unit * value if is_double else product - value)",
            "error = 0.0",
            "tests/unit/simulator/test_elements.py tests/unit/check/test_compare.py",
        ),
        (
            '*(() if fma else ("--fmad=false",))',
            "*()",
            "tests/test_build.py::test_flags_and_target_are_part_of_the_content",
        ),
    ),
    *_rule(
        "an element and a Python number compare in the element's type",
        (
            "                a, b = self.join(a, b)\n                return with_fields(expr, left=a, right=b)\n",
            "                return with_fields(expr, left=a, right=b)\n",
            "cpu:number_types.compared",
        ),
        (
            "a, b = self.join(self.expr(then), self.expr(orelse))",
            "a, b = self.expr(then), self.expr(orelse)",
            "kept:conditional_expressions",
        ),
        (
            "joined = self.join_all(numbers)",
            "joined = numbers",
            "cpu:number_types.floats",
        ),
        (
            "for name in COMPARISONS:\n"
            "        install_operator(cls, name, _tainting_comparison(cls, name), handles_any_operand=True)",
            "",
            "tests/unit/simulator/test_elements.py",
        ),
    ),
    *_rule(
        "a constant that an element cannot hold",
        ("return represents(dtype, number)", "return True", "refused:constant_met_too_large"),
        ("lambda number: low <= number <= high", "lambda number: True", "refused:constant_stored_too_large"),
        ("for item in items_of_table(value, table) if not fits(item)", "for item in ()", "refused:table_met_too_large"),
        ("range(count) if at is None else [at % count]", "range(count)", "refused:table_met_too_large"),
        (
            "if isinstance(value, ir.Constant) else constant_value(value)",
            "if isinstance(value, ir.Constant) else None",
            "refused:composed_constants",
        ),
        (
            'THREAD.report(f"a Python integer wraps in `{self.name}` of {self._dtype}", f"{value}")',
            "pass",
            "tests/unit/simulator/test_simulate.py",
        ),
    ),
    *_rule(
        "uint16, uint32, uint64 need a cast",
        ("if a.is_bare or b.is_bare:", "if False:", "refused:unsigned_meets_signed"),
        (
            "if joined is None:\n                message",
            "if joined is None:\n                return type_\n                message",
            "refused:unsigned_meets_signed",
        ),
    ),
    *_rule(
        "round, floor, ceil, trunc of a float",
        (
            "return with_fields(expr, args=tuple(args), type=ir.PY_INT)",
            "return with_fields(expr, args=tuple(args), type=args[0].type)",
            "cpu:number_types.integers",
        ),
        ("if len(args) == 2:\n            return self.rounded(expr, args[0], args[1])", "", "cpu:math_more"),
    ),
    *_rule(
        "division by zero",
        ("if (b == 0) return a / b;", "", "cpu:division"),
        (
            'self.error("P308", "division by zero"',
            '(lambda *_: None)("P308", "division by zero"',
            "refused:division_by_zero",
        ),
        (
            "if cls.is_python:\n        raise division_by_zero(a, symbol, b)",
            "",
            "tests/unit/simulator/test_findings.py",
        ),
        (
            "rounded[0] = a.value / b.value if b.value else _divide_by_zero",
            "rounded[0] = a.value / b.value if True else _divide_by_zero",
            "tests/unit/simulator/test_elements.py",
        ),
    ),
    *_rule(
        "INT_MIN // -1 wraps",
        (
            "if (std::is_signed_v<T> && b == T(-1)) return static_cast<T>",
            "if (false) return static_cast<T>",
            "cpu:division",
        ),
        ("if (std::is_signed_v<T> && b == T(-1)) return 0;", "", "sanitized:division.unknown"),
    ),
    *_rule(
        "arithmetic counts a comparison as an integer",
        ('if expr.op == "-" and operand.type == ir.ElementType(BOOL):', "if False:", "refused:bool_without_sign"),
        (
            "return self.convert(operand, ir.PY_INT) if operand.type == ir.PY_BOOL else operand",
            "return operand",
            "cpu:number_types.integers",
        ),
        ("if not (logical and kinds == {Kind.BOOL}):", "if False:", "cpu:number_types.integers"),
        ("bool: Kind.INT, int: Kind.INT,", "bool: Kind.BOOL, int: Kind.INT,", "cpu:number_types.integers"),
    ),
    *_rule(
        "range bounds from elements are Python integers",
        (
            "bounds = [self.integer(self.expr(bound), ",
            "bounds = [(lambda a, _: a)(self.expr(bound), ",
            "refused:float_range",
        ),
        (
            "return ir.Constant(0, value.span, ir.PY_INT)\n        return self.convert(value, ir.PY_INT)",
            "return ir.Constant(0, value.span, ir.PY_INT)\n        return value",
            "emulated:number_types.bounds",
        ),
    ),
    *_rule(
        "else after loops",
        ("if not (orelse and _breaks(loop.body)):", "if True:", "cpu:loop_else"),
        ("flagged += [flag, replace(stmt, trivia=ir.Trivia())]", "flagged.append(stmt)", "cpu:loop_else"),
        (
            "self.elided += elided_in(orelse, ir.Elision.UNREACHABLE)\n            return (bare,)",
            "return (bare, *orelse)",
            "cpu:loop_else",
        ),
    ),
    *_rule(
        "a lambda that a line names is a function",
        (
            'object.__setattr__(block, "body", body)',
            "pass",
            "tests/unit/frontend/test_siblings.py::test_lambdas_of_other_files",
        ),
        (
            "return LAMBDA if is_lambda(node, positions) else node.name.value",
            "return node.name.value",
            "tests/unit/frontend/test_siblings.py::test_lambdas_of_other_files",
        ),
        (
            "return positions.span(function.body.body[0]).line",
            "return positions.span(function.name).line",
            "tests/unit/frontend/test_siblings.py::test_lambdas_of_other_files",
        ),
    ),
    *_rule(
        "`:=` assigns where Python does",
        (
            "if any(isinstance(part, ir.Name) and part.id == name for part in parts):",
            "if False:",
            "refused:walrus",
        ),
        ("if any(isinstance(part, observers) for part in parts):", "if False:", "refused:walrus"),
        ("if result is not None and (named := named_in(target)):", "if False:", "refused:walrus"),
        ("    if before or orelse:\n", "    if before:\n", "kept:walrus"),
        (
            "others, test = tests, ir.Constant(True, span)",
            "others, test = others, ir.Constant(True, span)",
            "cpu:walrus.loops",
        ),
        (
            "return (*before, ir.If(test, self._filtered(others, inside), span=test.span))",
            "return (ir.If(test, (*before, *self._filtered(others, inside)), span=test.span),)",
            "cpu:walrus.places",
        ),
    ),
    *_rule(
        "what has no meaning in a kernel is refused",
        (
            'self.scope.error("P103", f"{word} is not supported in a kernel", statement, hint)',
            "pass",
            "refused:statements_without_meaning",
        ),
        (
            'self.scope.error("P103", f"{word} is not supported in a kernel", node, _INSTEAD',
            '(lambda *_: None)("P103", f"{word} is not supported in a kernel", node, _INSTEAD',
            "refused:values_without_meaning",
        ),
    ),
    *_rule(
        "what is printed is what Python prints, infinities too",
        ("            elif _pads_with_zeros(field):\n", "            elif False:\n", "refused:print_zeros"),
        ('r"[-+ ]*0\\d*[1-9]"', 'r"[-+ ]*0"', "refused:print_zeros"),
        ("                letter = f\"ll{letter.replace('d', 'u')}\"\n", "", "kept:print"),
        ("self.convert(value, _printed_float(type_)), ", "value, ", "kept:print"),
        (' in ("unsigned", "uint32_t"):', ' == "unsigned":', "kept:print"),
        ('(match["align"] and match', '(found["align"] == "<" and found', "refused:print"),
        ('elif not {"+", " "}.isdisjoint(field.layout) and _is_unsigned(type_)', "elif False", "refused:print_zeros"),
        ('r"[-+ ]*0\\d*[1-9]"', 'r"0\\d*[1-9]"', "refused:print_zeros"),
    ),
    *_rule(
        "formulas have torch's signed zeros",
        (
            '"0 if a == 0 and b == b else a * math.log(b)"',
            '"a if a == 0 and b == b else a * math.log(b)"',
            "kept:library_functions",
        ),
        (
            '"a if a >= 0 else alpha * math.expm1(a)"',
            '"a if a > 0 else alpha * math.expm1(a)"',
            "kept:library_functions",
        ),
    ),
    *_rule(
        "what a block asks once is asked of its first thread, and what prints is asked of each",
        (
            'return "Dim3{0, 0, 0}" if name == "threadIdx" and self.thread == FIRST_THREAD else name',
            "return name",
            "cpu:guards_of_barriers.agreed_about_functions",
        ),
        (
            "return names | from_printing, lambda",
            "return names, lambda",
            "tests/test_print.py",
        ),
        (" or prints(expr)\n", "\n", "tests/test_print.py"),
    ),
    *_rule(
        "formulas of several steps compute in float32",
        ("text, in_float32=True, options", "text, options", "kept:formulas_in_float32"),
        (
            "return self.cast_element(element, ir.ElementType(F32)) if _is_half(type_) else element",
            "return element",
            "kept:formulas_in_float32",
        ),
        ("element = self.cast_element(value, type_)\n", "element = value\n", "cpu:formulas_in_float32.whole"),
        ("wide = element_class(F32) if narrow.dtype.is_half else narrow", "wide = narrow", f"{FORMULAS}float16]"),
        (
            "return wide.from_operand(narrow.from_operand(value)) if isinstance(value, Element) else value",
            "return value",
            f"{FORMULAS}uint8]",
        ),
        ("        return narrow.convert(result)\n", "        return result\n", f"{FORMULAS}float16]"),
    ),
    *_rule(
        "the simulator knows libraries by any of their paths",
        ("            value = self._substitute_module(value)\n", "", "cpu:library_functions.dotted"),
        (
            "ModuleSubstitute(module, replaced, self._module)",
            "ModuleSubstitute(module, replaced, lambda inner: inner)",
            "cpu:library_functions.dotted",
        ),
    ),
    *_rule(
        "locals hide no function and no table",
        (
            "functions = {_stem(symbols[key]) for key in callees(kernel.body)}",
            "functions = set()",
            "cpu:names_hidden.temporaries",
        ),
        ('return name.rstrip("_") or "_"', "return name", "kept:names_hidden"),
        ("names |= {decl.name for decl in kernel.array_decls} | {", "names |= {", "cpu:names_hidden.looked_up"),
        (" and self.table(node) is None", "", "cpu:names_hidden.looked_up"),
        ("dict.fromkeys(helpers | functions, ", "dict.fromkeys(helpers, ", "kept:names_hidden"),
        ("while symbol in others or is_declared", "while is_declared", "kept:names_hidden"),
        (" or is_declared(symbol) or taken", " or taken", "kept:names_of_c_headers"),
        ("taken |= {callee.function.symbol for callee in callees.values()}", "", "cpu:names_hidden.of_blocks"),
    ),
    *_rule(
        "names of headers are taken",
        (" and not is_declared(self.name)", "", "kept:names_of_c_headers"),
        (" or is_declared(kernel.name)", "", "kept:names_of_c_headers"),
        ("text in RESERVED or is_macro(text)", "text in RESERVED", "kept:names_of_c_headers"),
    ),
    *_rule(
        "what Python runs is translated or refused",
        (
            "if function.asynchronous is not None:\n            what",
            "if False:\n            what",
            "refused:async_function",
        ),
        ("if args:  # the compiled", "if False:  # the compiled", "refused:breakpoint_with_arguments"),
        ("self._refuse_calls_of_def(statement)", "pass", "refused:def_with_calls"),
        ("case other if node.args[0].keyword is not None", "case other if False", "refused:keywords_of_places"),
        ("if parameter.name in inits and parameter.name not in stored", "if False", "refused:init_of_input"),
    ),
    *_rule(
        "a kernel is one torch operator",
        ("increment_versions(plan.pick_written(values))", "True", "tests/unit/call/test_operators.py"),
        ("        increment_versions(written.values())\n", "", "tests/unit/call/test_operators.py"),
        ("if _dispatch_modes() or _function_modes()", "if _function_modes()", "tests/unit/call/test_operators.py"),
        (
            "            check_launch_gradients(self.signature, values)\n",
            "            pass\n",
            "tests/unit/call/test_operators.py",
        ),
        ("        check_traced_arguments(self.signature, values)\n", "", "tests/unit/call/test_operators.py"),
        (
            "if tensor.is_inference() and not is_inference_mode_enabled():\n            what",
            "if False:\n            what",
            "tests/unit/call/test_operators.py",
        ),
        (
            "    const torch::stable::accelerator::DeviceGuard guard({{ kernel.first }}.get_device_index());\n",
            "",
            "tests/test_device_guard.py",
        ),
    ),
    *_rule(
        "`vmap` is a call for each element",
        ("slices[key].copy_(values[key])", "pass", "tests/unit/call/test_vmap.py"),
        ("separate.copy_(place.split(copy, self.size, merged.extent))", "pass", "tests/unit/call/test_vmap.py"),
        ("                if self._fits_grid(dim,", "                if True or (dim,", "tests/unit/call/test_vmap.py"),
        ("return torch.is_grad_enabled() and any(", "return False and any(", "tests/unit/call/test_vmap.py"),
        ("return uses == len(own) and all(", "return all(", "tests/unit/call/test_vmap.py"),
        (
            "isinstance(each, ir.Name) and each.id == index for each in own",
            "True for each in own",
            "tests/unit/call/test_vmap.py",
        ),
    ),
    *_rule(
        "backward kernels compute the gradients",
        (
            "any(each.function.name.value in chosen for each in attached)",
            "source.function.name.value in chosen",
            "tests/test_error_cases.py",
        ),
        ("plain.clone(memory_format=torch.contiguous_format)", "plain", "tests/unit/call/test_gradients.py"),
        ("else gradient.contiguous()", "else gradient", "tests/unit/call/test_gradients.py"),
        (
            "_function_of_level.apply(_with_gradients(run)",
            "_function_of_level.apply(run",
            "tests/unit/call/test_gradients.py",
        ),
        (
            "    except RuntimeError:  # a leaf that",
            "    except RuntimeError if False else ():  # a leaf that",
            "tests/unit/call/test_gradients.py",
        ),
        (
            "if self._operator is None or operators != self._operators:",
            "if self._operator is None:",
            "tests/unit/call/test_gradients.py",
        ),
        (
            "        if forward_ad._current_level >= 0:\n            self.",
            "        if False:\n            self.",
            "tests/unit/call/test_gradients.py",
        ),
        (
            "    for backward in kernel.backwards:\n        identities",
            "    for backward in []:\n        identities",
            "tests/unit/call/test_gradients.py",
        ),
        ("elif own.may_be_none and not self.backward.is_optional(parameter):", "elif False:", "refused:backwards"),
        ("            if target in computed:\n", "            if False:\n", "refused:backwards"),
        ("elif self.backward.size is None:", "elif False:", "refused:backwards"),
        ("if not self._is_differentiable(target):", "if False:", "refused:backwards"),
    ),
    *_rule(
        "operators have what torch's schemas can have",
        ("if count > MAX_ARGUMENTS:", "if False:", "refused:operator_of_too_many_arguments"),
        ("MAX_WRITTEN: Final = 26", "MAX_WRITTEN: Final = 25", "refused:operator_of_too_many_results"),
        ("if name in _WORDS:", "if False:", "refused:operator_of_reserved_name"),
    ),
    *_rule(
        "device functions take arrays, write to them, recurse",
        (
            "orelse=b, type=(a if known(a) else b).type",
            "orelse=b, type=a.type",
            "tests/test_kernel_cases.py::test_translation_is_as_kept[recursion_in_branches]",
        ),
        ("while symbol in helpers or (symbol", "while (symbol", "cpu:names_of_functions"),
        ("{_TYPES} {_FUNCTIONS} main", "{_TYPES} main", "kept:names_of_c_headers"),
        ('kernel.name.removesuffix("f") in _TAKEN_BY_FUNCTIONS', "False", "kept:names_of_c_headers"),
        ("if has_bare_comma else", "if False else", "kept:assert_of_templates"),
        (
            "accessed[key] |= {arg.id for p, arg in pairs if isinstance(arg, ir.ArrayName) and p.name in inner}",
            "pass",
            "cpu:device_functions.recursive",
        ),
        (
            "return name, self._results.get(name)",
            "return name, None",
            "cpu:device_functions.recursive cpu:device_functions.two_types",
        ),
        (
            "return f\"{key}: {', '.join(str(type_) for type_ in types)}\"",
            "return key",
            "cpu:device_functions.recursive cpu:device_functions.two_types",
        ),
    ),
    *_rule(
        "functions read what is around them, as it is at the call",
        ("if self.scope.environment.binders[name] is not binder:", "if False:", "refused:closures_refused"),
        (
            "*assigned, *deleted))",
            "*assigned))",
            "refused:closures_refused",
        ),
        ("if name not in bound}", "}", "cpu:closures.own_functions"),
        ("home = self.environment.homes.get(node.value)", "home = self.environment", "cpu:closures.own_functions"),
        ("span, used | keepable)", "span, used)", "cpu:closures.extents"),
        (
            "        keepable -= used\n",
            "",
            "cpu:closures.extents",
        ),
        (
            "return _with_typed_literals(value) if isinstance(value, CodeType) else value",
            "return value",
            "cpu:complex_literals_in_functions",
        ),
    ),
    *_rule(
        "functions within functions are defined once, before their calls",
        ("if home is self.scope.environment and", "if False and", "refused:functions_defined_late"),
        (
            "if self.scope.environment.functions.get(name.value) is statement:",
            "if True:",
            "refused:functions_defined_late",
        ),
    ),
    *_rule(
        "outputs are made or given",
        (
            "self._readings = (self._inputs, self._required, self._all, not_derived)",
            "self._readings = (self._inputs, self._inputs, self._inputs, not_derived[:1])",
            "tests/test_calls.py",
        ),
        (
            "values = allocate_outputs(call.signature, bound)",
            "values = bound",
            "tests/test_calls.py",
        ),
    ),
    *_rule(
        "k.simulate[grid, block] mirrors k[grid, block]",
        (
            "return lambda *args, **kwargs: self._run(args, kwargs, tuple(grid), tuple(block))",
            "return lambda *args, **kwargs: self._run(args, kwargs, None, None)",
            "tests/test_calls.py",
        ),
        (
            'for extent in ((value,) if hasattr(value, "__index__") else value)]',
            'for extent in ((1,) if hasattr(value, "__index__") else value)]',
            "tests/test_calls.py",
        ),
    ),
    *_rule(
        "a redefinition is noticed at the next use",
        (
            "if not all(map(is_, map(get, names), values)):",
            "if False:",
            "tests/unit/call/test_redefinitions.py",
        ),
        ("function.__code__ is code", "True", "tests/unit/call/test_redefinitions.py"),
        ("and function.__defaults__ is defaults", "", "tests/unit/call/test_redefinitions.py"),
        (
            "return all(contents(cell) is value for cell, value in cells) if cells else True",
            "return True",
            "tests/unit/call/test_redefinitions.py",
        ),
        (
            "if last is None or not last.dependencies.unchanged():",
            "if last is None:",
            "tests/unit/call/test_redefinitions.py",
        ),
        ("if last is not None and last.key == current.key:", "if False:", "tests/unit/call/test_redefinitions.py"),
        (
            "name in live and _differs_from_source(name, live[name], source_only, is_here)",
            "False",
            "tests/unit/call/test_redefinitions.py",
        ),
        (
            "if others := redefined(around, visible, self.module.is_here):",
            "if False:",
            "tests/unit/call/test_redefinitions.py",
        ),
        (
            "waiting += [other for other, value in others if name in self._names_in_definition(value)]",
            "pass",
            "tests/unit/call/test_redefinitions.py",
        ),
        (
            "return is_library(source_only.imports[name]) and _is_not_library_object(source_only.imports[name], value)",
            "return False",
            "tests/unit/call/test_redefinitions.py",
        ),
        (
            "if kept is not None and kept[0] is function.__code__:",
            "if kept is not None:",
            "tests/unit/call/test_redefinitions.py tests/unit/call/test_function_text.py",
        ),
    ),
    *_rule(
        "the text that Python runs is translated",
        ("if text.text and not is_text_of(text, each):", "if False:", "tests/unit/call/test_function_text.py"),
        ("        remember_texts(function)\n", "", "tests/unit/call/test_function_text.py"),
        (
            "return not is_plain and any(_may_be_compiled_from(code, each) for each in namesakes)",
            "return False",
            "tests/unit/call/test_function_text.py",
        ),
        (
            "return not is_plain and any(_may_be_compiled_from(code, each) for each in namesakes)",
            "return any(_may_be_compiled_from(code, each) for each in namesakes)",
            "tests/unit/call/test_function_text.py",
        ),
        ('if hasattr(function, "__wrapped__"):', "if False:", "tests/unit/call/test_function_text.py"),
    ),
    *_rule(
        "warm calls, cold calls, launches and simulations accept the same",
        (
            "key = (*map(type, args), *kwargs, *map(type, kwargs.values())) if kwargs else tuple(map(type, args))",
            "key = (len(args), *kwargs)",
            "tests/test_odd_arguments.py",
        ),
        (
            "return not (_any_requires_grad(*values) and is_grad_enabled())",
            "return True",
            "tests/test_odd_arguments.py",
        ),
        ("        call.binder.accept(bound, on_grid=grid is not None)\n", "", "tests/test_odd_arguments.py"),
        ("if tensor.is_nested or tensor.layout is not torch.strided:", "if False:", "tests/test_odd_arguments.py"),
        ("    if tensor.is_conj() or tensor.is_neg():", "    if False:", "tests/test_odd_arguments.py"),
        ("is_fit, limit = I64.holds(int(value)), I64.c", "return", "tests/test_odd_arguments.py"),
        ("if overlap(a, b) and not", "if False and not", "tests/test_odd_arguments.py"),
        ("complete[name] = int(complete[name])", "pass", "tests/test_odd_arguments.py"),
    ),
    *_rule(
        "a refused kernel raises at its first use",
        (
            "return Kernel(function, options)\n\n    return decorate if",
            "made = Kernel(function, options)\n        made.translation\n        return made\n\n    return decorate if",
            "tests/test_calls.py",
        ),
        (
            "raise TranslationError(reporter.sorted)\n    finished",
            "pass\n    finished",
            "tests/test_calls.py",
        ),
    ),
    *_rule(
        "threads that work together are ordered by what they wait for",
        (
            "or (block is now.block and access.epoch < block.epoch):",
            "or block is now.block:",
            "tests/test_races.py",
        ),
        ("or (block is now.block and access.epoch < block.epoch):", "or False:", "tests/test_races.py"),
        ("if access.epoch < block.grid_epoch or", "if", "tests/test_races.py"),
        ("if access.epoch < block.grid_epoch or", "if block.grid_epoch or", "tests/test_races.py"),
        (
            "if not _is_same_value(last.value, access.value):\n                self",
            "if True:\n                self",
            "tests/unit/simulator/test_threads.py",
        ),
        ("if not in_block:\n            self.fenced", "if True:\n            self.fenced", "tests/test_races.py"),
        ("_join(published, self.fenced)", "_join(published, self._past())", "tests/test_races.py"),
        ("if _is_result_used(frame.f_code, frame.f_lasti):", "if True:", "tests/test_races.py"),
        ("if _is_result_used(frame.f_code, frame.f_lasti):", "if False:", "tests/test_races.py"),
        (
            '"lane + at if lane + at <= (lane | width - 1) else lane"',
            '"lane + at"',
            "tests/unit/simulator/test_threads.py",
        ),
        ("total.error + total.terms *", "total.error + 0 *", "tests/unit/simulator/test_threads.py"),
        ("elif write.error == math.inf:", "elif False:", "tests/unit/simulator/test_threads.py"),
        ("writes=writes, findings=tuple(findings)", "findings=tuple(findings)", "tests/unit/simulator/test_threads.py"),
    ),
    *_rule(
        "a global index gets its guard however it is written",
        ("while isinstance(expr, ir.Name) and expr.id in self.values:", "while False:", "kept:guards_by_parts"),
        (", *self.block[AXES.index(axis) :][:1])", ",)", "kept:guards_by_parts"),
        ("elif stmt.augmented and assigned[stmt.name] == 2", "elif False", "kept:guards_by_parts"),
        (
            "missing_by_axis.setdefault((axis, extent)",
            "missing_by_axis.setdefault((axis, place.index)",
            "kept:guards_by_parts",
        ),
        (
            "if isinstance(stmt, ir.Assign) and stmt.name in names), default",
            "if False), default",
            "kept:guards_by_parts",
        ),
    ),
    *_rule(
        "where threads wait, each access is guarded on its own",
        ("if kernel.guards and not has_barrier(kernel):", "if kernel.guards:", "kept:guards_of_barriers"),
        ("return _guard_elements(kernel, accesses, reporter)", "pass", "kept:guards_of_barriers"),
        ("return _predicate_each(kernel, accesses, missing, reporter)", "pass", "kept:guards_of_barriers"),
        (
            "dependent = effects.get(access.span) or access.place.index",
            "dependent = access.place.index",
            "kept:atomics",
        ),
        ("return all(counts[name] == self.mentions[name] for", "return all(True for", "kept:guards_of_barriers"),
        ("if any(map(self.waits, expressions(stmt))):", "if False:", "kept:warps"),
        (
            "return not function.is_kernel_local(array)",
            "return True",
            "tests/test_kernel_cases.py::test_translation_is_as_kept[guards_of_barriers]",
        ),
        ("return bool(active) and frame", "return False and frame", "cpu:guards_of_barriers"),
        ("skip_if_predicated(rebuilt) if self._predicated else rebuilt", "rebuilt", "cpu:guards_of_barriers"),
        ("if not past.isdisjoint(item.guards))", "if True)", "cpu:guards_of_barriers"),
        ("and not self.waits(_from_to(block, only, name))", "", "tests/test_cpu_blocks.py"),
        (" and ir.unconverted(first.right) == ir.unconverted(second.left)", "", "kept:guards_of_quotients"),
    ),
    *_rule(
        "all threads of a block reach its barriers",
        ("inner = divergence or self.condition(test)", "inner = divergence", "refused:barriers"),
        ("left = self.block(loop.body, inside or early)", "left = self.block(loop.body, inside)", "refused:barriers"),
        ("if state.of(arg, varying):", "if False:", "refused:barriers"),
        ("self.check_expression(right, divergence or self.condition(left))", "pass", "refused:votes"),
    ),
    *_rule(
        "threads of a block agree about what they load from one place of shared memory",
        (
            "spaces = {ir.Space.LOCAL} if",
            "spaces = {ir.Space.LOCAL, ir.Space.SHARED} if",
            "tests/test_kernel_cases.py::test_translation_is_as_kept[agreed_in_shared_memory]",
        ),
        ("else {ir.Space.LOCAL, ir.Space.SHARED}", "else {ir.Space.LOCAL}", "refused:grid_barriers"),
        ('|= varying[""].written & {p.name', "|= set() & {p.name", "refused:barriers"),
        ("DeviceCall(function=key) if functions[key].writes_parameters:", "DeviceCall() if False:", "refused:barriers"),
        (
            "functions[key].result or functions[key].waits:",
            "functions[key].result:",
            "tests/test_kernel_cases.py::test_translation_is_as_kept[agreed_in_shared_memory]",
        ),
        ("return bool(used & changing) or any(", "return any(", "cpu:agreed_in_shared_memory"),
    ),
    *_rule(
        "threads that meet see what others wrote",
        ("return array in read |", "return array in set() |", "kept:grid_barriers"),
        ("syncs = any(isinstance(stmt, ir.Sync)", "syncs = any(False", "kept:guards_of_barriers"),
        ("return syncs or any(isinstance(expr, ir.Atomic)", "return syncs or any(False", "kept:atomics_inside"),
    ),
    *_rule(
        "all threads of a grid reach its barriers",
        ("for scope in (_BLOCK, _GRID):", "for scope in (_BLOCK,):", "refused:grid_barriers"),
        ('frozenset(["threadIdx", "blockIdx"])', 'frozenset(["threadIdx"])', "refused:grid_barriers"),
        ("return self.scope is _GRID", "return False", "refused:grid_barriers"),
    ),
    *_rule(
        "a half is made by way of float32",
        ("c_type not in HALVES or computed == c_type", "True", "cpu:updates_of_halves"),
        ("loses = may_be_half(type_) and not _fits_float32(value.type)", "loses = False", "kept:halves_of_doubles"),
        ("(dtype.kind is Kind.FLOAT and dtype.bits == 32)", "True", "kept:halves_of_doubles"),
        ("if _is_half(type_) and may_be_half(value.type):", "if False:", "kept:halves_of_doubles"),
    ),
    *_rule(
        "a comparison that a local keeps is a guard",
        (".union(*(self.facts_by_local.get(name, ()) for name in names_in(test)))", "", "kept:guards_kept_in_locals"),
        ("| known | _compared_in(value, facts)", "| _compared_in(value, facts)", "kept:guards_kept_in_locals"),
        ("if not _is_start(end)}", "}", "kept:guards_kept_in_locals"),
        ("return name not in computed", "return True", "cpu:guards_kept_in_locals"),
    ),
    *_rule(
        "what constants take beyond 64 bits is refused",
        (
            "_UNKNOWN: Final = (ArithmeticError, TypeError,",
            "_UNKNOWN: Final = (ArithmeticError,",
            "tests/test_error_cases.py::test_error_case[wrong_count_of_constants]",
        ),
        (
            'reporter.error("P305", f"{what} does not fit 64 bits", expr.span, _HINT)',
            "pass",
            "refused:constants_computed_beyond_64_bits",
        ),
        ("value = _computed(_CALLS[function], numbers)", "pass", "refused:constants_computed_beyond_64_bits"),
        ("value = _computed(_ROUNDINGS[rounding], [number])", "pass", "refused:constants_beyond_64_bits"),
        ("return THREAD.integer(integral(arguments[0], function))", "pass", "tests/unit/simulator/test_simulate.py"),
        ("elif _counter_overflows(*map(constant_number, bounds)):", "elif False:", "refused:range_beyond_64_bits"),
        ("for last in range(start, stop, step)[-1:]", "for last in [stop]", "refused:range_beyond_64_bits"),
        ("and numbers and abs(numbers.step) > 1:", "and False:", "tests/unit/simulator/test_findings.py"),
    ),
    *_rule(
        "what the launch says is made signed where a negative number may meet it",
        (
            "return UNSIGNED_INDEX\n    return arithmetic_type(common)",
            "pass\n    return arithmetic_type(common)",
            "kept:launch_in_expressions emulated:launch_in_expressions",
        ),
        (
            "with_fields(stmt, direction=direction, stop=to_signed(stmt.stop))",
            "with_fields(stmt, direction=direction)",
            "kept:launch_in_expressions",
        ),
        (
            "if direction == 1 and self.ranges.of(stmt.start).is_natural:",
            "if direction == 1:",
            "kept:launch_in_expressions",
        ),
        ('case "+" | "*" | "&" | "|" | "^" if not', 'case "+" | "*" if not', "kept:launch_in_expressions"),
        ("return is_unsigned(operand)", "return False", "kept:launch_in_expressions"),
    ),
    *_rule(
        "C++ tells the functions of a text apart",
        ("return are_templates and len(one)", "return False and len(one)", "kept:overloads"),
        ("if one == other:\n        return True", "if one == other:\n        return False", "kept:overloads"),
    ),
    *_rule(
        "what C has in fewer bits is widened before it is shifted, negated or inverted",
        ("return replace(expr.value, type=target)", "return expr.value", "kept:narrow_shifts"),
        ("if C_RANK[arithmetic_type(full.c_type)] < C_RANK[wanted]:", "if False:", "kept:narrow_shifts"),
        ("if C_RANK[arithmetic_type(inner.c_type)] < C_RANK[wanted] < C", "if 9 < C", "kept:narrow_shifts"),
    ),
    *_rule(
        "whole numbers that no float holds become none",
        ("and not represents(F64, value.value)", "and False", "refused:constant_that_no_float_holds"),
        (
            "left, right = self.convert_exactly(left, type_), self.convert_exactly(right, type_)",
            "left, right = self.convert(left, type_), self.convert(right, type_)",
            "refused:constant_that_no_float_holds",
        ),
        (
            "return self.convert_exactly(value, type_)",
            "return self.convert(value, type_)",
            "refused:constant_that_no_float_holds",
        ),
        ("if value != as_float(dividend) / as_float(divisor):", "if False:", "tests/unit/simulator/test_findings.py"),
        ("if compare(a, integer) != compare(a, double):", "if False:", "tests/unit/simulator/test_findings.py"),
    ),
    *_rule(
        "Python integers that may leave 64 bits are looked at",
        (
            "if value.__class__ is int and THREAD.integer is not int:",
            "if False:",
            "tests/unit/simulator/test_findings.py",
        ),
        (
            "            return function_of_integers(row)\n",
            "            return row.python\n",
            "tests/unit/simulator/test_findings.py",
        ),
        ("if self.value > LONG_HIGH:", "if False:", "tests/unit/simulator/test_findings.py"),
        (
            "return int if max(bounds, default=0) <= SMALL else CheckedInt",
            "return int",
            "tests/unit/simulator/test_small_integers.py",
        ),
        ("self.is_bounded &= width is not ir.Width.LONG", "pass", "tests/unit/simulator/test_small_integers.py"),
        (
            "self.is_bounded = False  # the count may exceed 64 bits",
            "pass  # the count may exceed 64 bits",
            "tests/unit/simulator/test_small_integers.py",
        ),
        (
            "isinstance(error, ZeroDivisionError) and THREAD.integer is int",
            "False",
            "tests/unit/simulator/test_small_integers.py",
        ),
    ),
    *_rule(
        "what a thread in doubt writes to shared memory puts its readers in doubt",
        (
            "self._cells_by_position[position][0] = value if is_certain else None",
            "self._cells_by_position[position][0] = value",
            "tests/unit/simulator/test_threads.py",
        ),
        ("= EXACT_WRITE if is_certain else TAINTED_WRITE", "= EXACT_WRITE", "tests/unit/simulator/test_threads.py"),
    ),
    *_rule(
        "threads that spin let others go on, and are told of where that does not help",
        ("except Restart as restart:", "except () as restart:", "tests/test_races.py"),
        (
            "if spinning and livelock.is_livelocked(blocks):",
            "if spinning and ran > 0:",
            "tests/unit/simulator/test_threads.py",
        ),
        ("list(_thread_state(thread, compared)) != before or ", "", "tests/unit/simulator/test_threads.py"),
        (" or _counts(thread)", "", "tests/unit/simulator/test_threads.py"),
        (" and all(map(_has_elements, arrays, self._elements))", "", "tests/unit/simulator/test_threads.py"),
        (
            "else value)\n\n\ndef _has_elements",
            "else 0)\n\n\ndef _has_elements",
            "tests/unit/simulator/test_threads.py",
        ),
    ),
    *_rule(
        "check takes what the order of threads leaves open, and nothing else",
        ("and position in self._changed_atomically:", ":", "tests/unit/simulator/test_threads.py"),
        (
            "elif not all(is_ordered(other, access.by) for other in others):",
            "elif False:",
            "tests/unit/simulator/test_threads.py",
        ),
        ('"add" if value.value != 0 else None', '"add"', "tests/unit/simulator/test_threads.py"),
        ('"add" if value.value != 0', '"add" if value != 0', "tests/unit/check/test_check_reports.py"),
        ("if writes[name].keys() != other.writes[name].keys()}", "if False}", "tests/unit/simulator/test_threads.py"),
        ("if total.magnitude > self._dtype.high:", "if False:", "tests/unit/simulator/test_threads.py"),
        (
            "self._eager_yields = 0 if seed is None else _EAGER_YIELDS",
            "self._eager_yields = 0",
            "tests/unit/simulator/test_threads.py",
        ),
        ("if self._backwards else items", "if False else items", "tests/unit/simulator/test_threads.py"),
        ("earlier = earlier or self._before_write.get(position, ())", "pass", "tests/unit/simulator/test_threads.py"),
        ("if total.is_nan:", "if False:", "tests/unit/check/test_check_reports.py"),
        (
            "return 0.0 if is_nan or is_sure else INF",
            "return 0.0 if is_sure else INF",
            "tests/unit/check/test_check_reports.py",
        ),
        ("0.0 if value.error < math.inf else math.inf", "0.0", "tests/unit/check/test_check_reports.py"),
        ("(error < math.inf or not self._is_integral)", "error < math.inf", "tests/unit/check/test_check_reports.py"),
    ),
    *_rule(
        "check says what it compared, and what it accepted",
        (
            "return self.has_run and self.accepted <= self.compared",
            "return True",
            "tests/unit/check/test_check_reports.py",
        ),
        ("self.accepted += accepted", "pass", "tests/unit/check/test_check_reports.py"),
        (
            "for group in permuted:\n            self",
            "for group in ():\n            self",
            "tests/unit/check/test_check_reports.py",
        ),
        ("rows.append(owner[at])", "pass", "tests/unit/check/test_check_reports.py"),
        ("if unmatched(columns):\n            return False", "pass", "tests/unit/check/test_check_reports.py"),
    ),
    *_rule(
        "a race whose write keeps the value is a finding of its own",
        ("keeps_value = kinds == {READ, KEPT}", "keeps_value = False", "tests/test_races.py"),
        (
            "keeps_value = kinds == {READ, KEPT}",
            "keeps_value = KEPT in kinds",
            "tests/unit/check/test_check_reports.py",
        ),
        ("changer if changer is not None and is_changed else last", "last", "tests/test_races.py"),
        ("if now.kind is KEPT:", "if False:", "tests/test_races.py"),
        (
            "None if self.starts_unwritten and position",
            "None if False and position",
            "tests/unit/check/test_check_reports.py",
        ),
        ("return bool(is_same_zero and new", "return bool(new", "tests/unit/check/test_check_reports.py"),
        ("is_same_zero and new.error <= old.error)", "is_same_zero)", "tests/unit/check/test_check_reports.py"),
    ),
    *_rule(
        "a check ends",
        ("raise TooManyOperations(THREAD.operation_limit)", "pass", "tests/unit/check/test_check_reports.py"),
        ("if self.timeouts >= MAX_TIMEOUTS:", "if False:", "tests/unit/check/test_check_reports.py"),
        (
            "work <= most and budget.expected(work) <= allowance",
            "work <= most",
            "tests/unit/check/test_check_reports.py",
        ),
    ),
    *_rule(
        "blocks wait for each other",
        ("if functions == {_GRID_BARRIER}:", "if not functions:", "tests/unit/simulator/test_threads.py"),
        ("blocks[0].report_missing_blocks((*blocks, *done))", "pass", "tests/test_races.py"),
        (
            "blocks[0].report_missing_blocks((*blocks, *done))",
            "blocks[0].report_missing_blocks(blocks)",
            "tests/test_races.py",
        ),
        (
            "for block in execution.in_launch_order(blocks):",
            "for block in blocks:",
            "tests/unit/simulator/test_threads.py",
        ),
        (
            "if is_grid_barrier(stmt):\n                    yield stmt\n                elif",
            "if",
            "tests/test_cpu_blocks.py",
        ),
    ),
    *_rule(
        "a warp's reductions are CUDA's",
        ("if value.type not in (ir.ElementType(I32), ir.ElementType(U32)):", "if False:", "refused:warp_reductions"),
        ("if (mask >> lane & 1 && warp.first + lane != thread)", "if (mask >> lane & 1)", "cpu:warp_reductions"),
        ("_LANE_CALLS: Final = (LANE, LANE_HELPER)", "_LANE_CALLS: Final = (LANE,)", "tests/test_cpu_blocks.py"),
        ("if row.rule is Rule.REDUCE:  # the targets", "if False:  # the targets", "kept:warp_reductions"),
        ("unsigned lanes = __ballot_sync(mask, true);", "unsigned lanes = mask;", "kept:warp_reductions"),
    ),
    *_rule(
        "no block is larger than the launch bounds",
        ("elif math.prod(shape) > most:", "elif False:", "refused:launch_bounds"),
        ("type(n) is int and 1 <= n <= most", "1 <= n <= most", "refused:launch_bounds"),
        (
            "if signature.launch_bounds and threads > signature",
            "if threads > signature",
            "tests/unit/simulator/test_threads.py",
        ),
        ("return self.launch_bounds[0] if self", "return MAX_THREADS if self", "tests/unit/call/test_launch_bounds.py"),
        (
            "and math.prod(shape) <= min((MAX_THREADS",
            "and 0 <= min((MAX_THREADS",
            "tests/unit/call/test_launch_bounds.py",
        ),
    ),
    *_rule(
        "generators and tuples of them: as CPython computes them",
        (
            "scope.bound[part.value] = scope.computed_once(value)",
            "scope.bound[part.value] = value",
            "kept:generators_of_sequences",
        ),
        ("return min(first, last), max(first, last)", "return first, last", "cpu:tuples_iterated.cyclic"),
        ("return Zip(known, is_strict)", "return Zip(known)", "kept:generators_of_sequences"),
        ("case _ if first != other:", "case _ if False:", "kept:generators_of_sequences"),
        ("            if operand.is_held:", "            if False:", "cpu:order_of_calls"),
        (
            'if not isinstance(value, ir.Constant | ir.Name):\n            value = self.save(value, "value")',
            "pass",
            "kept:parts_stored",
        ),
        ("case [one, two] if one != two:", "case [one, two] if False:", "kept:parts_stored"),
        ("if base(part.array) != base(other.array):", "if True:", "refused:parts_stored"),
        (
            "return as_index(bound) if is_fixed(bound, assigned) else",
            "return as_index(bound) if True else",
            "kept:ranges_kept",
        ),
        ("if name not in self.scope.once:", "if False:", "refused:range_as_value"),
        ("return value if is_python else ir.Call(INDEX, (value,), value.span)", "return value", "kept:ranges_kept"),
        ("if every != found.keys() or not may_move:", "if not may_move:", "tests/test_ir_cases.py"),
    ),
    *_rule(
        "loops are unrolled where it is asked for",
        ("return counts, number", "return counts, 0", "kept:unroll"),
        ("type(number) is int and 1 <= number <= MAX_UNROLL", "True", "refused:unroll"),
        ("if by or self.dialect.unrolls_wholly:", "if by:", "kept:unroll"),
        ("if by or self.dialect.unrolls_wholly:", "if True:", "cpu:unroll"),
    ),
    *_rule(
        "device functions see the launch",
        ("args += map(self.launch_object, callee.launch)", "pass", "cpu:launch_in_functions"),
        (
            "if kernel.indices and launch_objects_by_function(kernel)",
            "if False and (kernel)",
            "cpu:launch_in_functions.of_elements",
        ),
        ('used = launch_objects_by_function(kernel)[""]', "used = frozenset(('blockDim',))", "cpu:launch_in_functions"),
        ("union(*map(seen.__getitem__, callees(c.body)))", "union()", "cpu:launch_in_functions"),
        ("value = returned[stmt.value.function] if", "value = None if", "kept:launch_in_functions"),
    ),
    *_rule(
        "atomic operations inside expressions happen once and in order",
        (
            "case ir.Atomic(span=span) if span in self.lifted_by_span:",
            "case ir.Atomic() if False:",
            "kept:atomics_inside",
        ),
        (
            "self.snapshot(operand) if place < last else",
            "self.lifted(operand) if place < last else",
            "cpu:atomics_inside",
        ),
        ("return node.array not in self.only_read", "return False", "cpu:atomics_inside.alone"),
        ("places = tuple(self.snapshot(index) for", "places = tuple(self.lifted(index) for", "kept:atomics_inside"),
        (
            "if isinstance(each, ir.Store | ir.Atomic)),",
            "if isinstance(each, ir.Store)),",
            "cpu:atomics_inside.alone",
        ),
        ("if acts and len(self.statement.targets) > 1", "if False", "cpu:atomics_inside.alone"),
    ),
    *_rule(
        "a block that a call tells is one that can be launched",
        ("if not is_launchable(shape):", "if False:", "tests/unit/call/test_launch_bounds.py"),
        ("_refuse_unlaunchable(signature, blocks, least=1)", "", "tests/test_calls.py"),
        ("if kernel.has_open_block else", "if False else", "tests/unit/call/test_launch_bounds.py"),
        ("sources += (extent for extent in self.block if", "sources += (extent for extent in () if", "refused:block"),
        ("block=tuple(map(change, kernel.block)),", "", "cpu:block_of_call"),
    ),
    *_rule(
        "shared arrays lie apart and aligned",
        ("key=lambda decl: -decl.type.dtype.bits)", "key=lambda decl: 0)", "kept:shared_dynamic"),
        ("b.name: size_of(before) for before", "b.name: None for before", "kept:shared_dynamic"),
        ("sum(self._bytes(b) or 0 for b in static)", "0", "tests/unit/call/test_shared_launches.py"),
        (
            "return max((math.prod(shape) for",
            "return min((math.prod(shape) for",
            "tests/unit/call/test_shared_launches.py",
        ),
        ("return max(*(each.bits for", "return min(*(each.bits for", "tests/unit/call/test_shared_launches.py"),
        ("if min(extents, default=1) < 1:", "if False:", "refused:array_without_elements"),
        ("if math.prod(extents) * dtype.bits", "if 0 * dtype.bits", "refused:array_without_elements"),
        ("declarations.check_size(type_.dims", "() and (type_.dims", "refused:array_without_elements"),
    ),
    *_rule(
        "a row of a view is loaded and stored at once",
        (
            "return kernel.base_array(array) if kernel.vector_width(array) else array,",
            "return array,",
            "kept:views_in_rows",
        ),
        ("if self.fields(value) == row_fields(len(value.type.items)):", "if False:", "kept:views_in_rows"),
        ("and stmt.array not in accessed:", "and False:", "tests/unit/simulator/test_rows.py"),
        ("if decl.row_bytes > MAX_BYTES:", "if False:", "refused:views_in_rows"),
        ("if value.type not in (row, ir.UNKNOWN) and", "if False and", "refused:rows_of_views"),
        ("row=kernel.vector_widths.get(parameter.name, 0),", "row=0,", "tests/unit/simulator/test_rows.py"),
        (
            "is_aligned=any(parameter.name in arrays_of_row_pointers(kernel) for kernel in family),",
            "is_aligned=False,",
            "tests/unit/simulator/test_rows.py",
        ),
        ("aligned=arrays_of_row_pointers(kernel),", "", "tests/unit/simulator/test_rows.py"),
    ),
    *_rule(
        "a view shows what it is a view of",
        ("return self.base_array(base) if base else name", "return name", "tests/test_cpu_blocks.py"),
        (
            "return updated | {caller.base_array(stmt.array) for",
            "return changed_ | {stmt.array for",
            "tests/unit/simulator/test_rows.py",
        ),
        (
            "if self.caller.is_kernel_local(array):",
            "if self.caller.array_decl(array) is not None:",
            "kept:views_in_rows",
        ),
        ("if length % width:", "if False:", "tests/unit/simulator/test_rows.py"),
        (
            "return PredicatedRows(self._array.view(rows, row))",
            "return self._array.view(rows, row)",
            "tests/unit/simulator/test_rows.py",
        ),
    ),
    *_rule(
        "a name around a kernel means what it means when the kernel runs",
        ("rivals = places[certain[-1] :] if certain else places", "rivals = places[-1:]", "refused:names_of_branches"),
        (
            "yield from find_bindings(block.body, False)\n            if orelse",
            "yield from find_bindings(block.body)\n            if orelse",
            "refused:names_of_branches",
        ),
        ("yield from find_bindings(suite, False)", "yield from find_bindings(suite)", "refused:names_of_branches"),
        ("succeeds = all(map(_succeeds, statement.body.body))", "is_whole = True", "refused:names_of_branches"),
        (
            "succeeds = all(map(_succeeds, statement.body.body))",
            "is_whole = False",
            "tests/unit/frontend/test_names_around.py",
        ),
        ("hasattr(loaded, name) or", "True or", "tests/unit/frontend/test_names_around.py"),
        ("is_certain and _is_type_checking(test)", "False", "tests/unit/frontend/test_names_around.py"),
        (
            "case cst.AugAssign(target=target) | cst.Del(target=target):",
            "case cst.Del(target=target):",
            "refused:names_bound_by_no_assignment",
        ),
        ("for head in _targets_of_head(statement):", "for head in ():", "refused:names_bound_by_no_assignment"),
        (
            "for name, node in self.bound_elsewhere.items():",
            "for name, node in ():",
            "refused:names_bound_by_no_assignment",
        ),
        ("if isinstance(node, ast.Global):", "if False:", "refused:names_bound_by_no_assignment"),
        ("ctx=ast.Store() | ast.Del())", "ctx=ast.Store())", "refused:names_bound_by_no_assignment"),
        (
            "flatten([statement])):\n            is_certain = False",
            "[]):\n            is_certain = False",
            "refused:names_made_of_others",
        ),
        ("if self.ambiguous or again or parameters:", "if False:", "refused:names_made_of_others"),
        ("if name in order else (bound, 0)", "if name in order else (again, 0)", "refused:names_made_of_others"),
        ("hidden = _BUILTIN_NAMES.union(parameters)", "hidden = frozenset(parameters)", "refused:names_made_of_others"),
        (
            "if name in self.ambiguous or name in self.classes:\n                    return None",
            "if False:\n                    return None",
            "refused:names_of_branches",
        ),
        ("and not is_decorated", "", "refused:decorated_functions"),
        ("if environment.binders and not environment.is_plain(node):", "if False:", "refused:decorated_functions"),
        ("and not (len(places) > 1 and last.name in self.live)", "", "tests/unit/frontend/test_names_around.py"),
        ("live = self.environment.live.get(function)", "live = None", "tests/unit/frontend/test_names_around.py"),
        (
            "values = {**qualified_names(function), **constants(function)}",
            "values = constants(function)",
            "tests/unit/frontend/test_names_around.py",
        ),
        (
            "if name not in but and is_known(qualified):",
            "if False:",
            "tests/unit/frontend/test_names_around.py",
        ),
    ),
    *_rule(
        "numbers have defaults, and one binder reads every call",
        (
            "return parameter.default.value if parameter.default is not None else None",
            "return None",
            "tests/unit/call/test_binder.py",
        ),
        (
            "positional = [p for p in signature.parameters if not p.by_keyword]",
            "positional = [*signature.parameters]",
            "tests/unit/call/test_binder.py",
        ),
        (
            "return self._bound((self._all,), args, kwargs)",
            "return self._bound(self._readings, args, kwargs)",
            "tests/unit/call/test_binder.py",
        ),
        ('[["*"], *words[place:]] if place < len(words) else []', "words[place:]", "tests/unit/call/test_binder.py"),
        (
            "parts += [text.name, *place, repr(defaults_of(each)), _constants(each)]",
            "parts += [text.name, *place, _constants(each)]",
            "tests/unit/call/test_binder.py tests/unit/call/test_redefinitions.py",
        ),
        (
            "and parameter.constexpr is None and arrays.get(parameter.name) is not None:",
            "and False:",
            "refused:default_value",
        ),
        (
            "fits &= not isinstance(type_, ir.ElementType) or type_.dtype.holds(number)",
            "pass",
            "refused:default_value",
        ),
        (
            "early = self.environment.as_defined()\n        if self.live",
            "early = self.environment\n        if self.live",
            "refused:default_value",
        ),
    ),
    *_rule(
        "the CPU inlines functions in which threads wait, also where they return tuples",
        ("return self.tuples[name][at]", "return self.tuples[name][0]", "cpu:tuples_from_waiting_functions"),
        (
            "                return items[at]\n",
            "                return items[0]\n",
            "cpu:tuples_from_waiting_functions",
        ),
        (
            'raise CannotSplit(f"`{function.name}`, {_WAITS}, returns early", stmt.span, function.origin)',
            "pass",
            "tests/unit/call/test_shared_launches.py",
        ),
    ),
    *_rule(
        "a call passes a tuple of numbers, and each number is a parameter",
        (
            "taken |= {param.name.value for param in all_parameters(function)}",
            "pass",
            "kept:tuple_parameters",
        ),
        (
            "taken |= {node.value for node in nodes_in(function.body) if isinstance(node, cst.Name)}",
            "pass",
            "kept:tuple_parameters",
        ),
        (
            "taken = {name for dim in (*extents, *(i.extent for i in parameters.indices)) for name in names_in(dim)}",
            "taken = set[str]()",
            "kept:tuple_parameters",
        ),
        (
            "isinstance(each, cst.Ellipsis | cst.Tuple) for each in nodes",
            "False for each in nodes",
            "refused:tuple_parameters",
        ),
        ('self._read_number(each, f"{name}[{place}]",', "self._read_number(each, name,", "refused:tuple_parameters"),
        ("if len(items) != len(names):", "if False:", "tests/unit/call/test_tuples.py"),
        ("return (tuple, list)", "return (tuple,)", "tests/unit/call/test_tuples.py"),
        (
            "[bound.pop(number) for number in numbers]",
            "[bound.pop(number) for number in numbers][::-1]",
            "tests/unit/call/test_tuples.py",
        ),
        (
            "return {name for name, _ in self.tuples}.union(",
            "return set[str]().union(",
            "tests/unit/call/test_tuples.py",
        ),
        (
            "key = in_order, *map(type, args), *kwargs, *map(type, kwargs.values())",
            "key = in_order, len(args), *kwargs",
            "tests/unit/call/test_tuples.py",
        ),
    ),
    *_rule(
        "constants of classes are those that Python has, and members of `IntEnum` are integers",
        (
            "return value if is_integer_member(value) else None",
            "return getattr(value, 'value', None)",
            "refused:class_constants",
        ),
        ("yield from (*node.decorators, *node.bases)", "yield node.name", "refused:names_bound_by_no_assignment"),
        ("if flag is None or (", "if True or (", "refused:class_constants"),
        (
            "return self.qualify(decorator.decorator) in (",
            "return True or self.qualify(decorator.decorator) in (",
            "refused:class_constants",
        ),
        (
            "if (in_class := substitute_class(value, self._substitute)) is not None:",
            "if False:",
            "tests/unit/simulator/test_classes.py",
        ),
    ),
    *_rule(
        "only a failed assert computes the values of its message, once, and behind its test",
        ("(*expressions.scope.hoisted.take(), failure)", "(failure,)", "kept:assert_values"),
        (
            "isinstance(body[0], ir.Assert) and body[0].values and not self.dialect.throws",
            "False",
            "kept:assert_values",
        ),
        ('texts = (*stmt.message[:-1], f"{stmt.message[-1]}\\n")', "texts = stmt.message", "kept:assert_values"),
        ("std::snprintf(&message[0], message.size() + 1, format, values...);", "", "tests/test_asserts.py"),
    ),
    *_rule(
        "a failed assert ends its block, and the first block's is raised",
        (" or self.asserts(block)", "", "tests/test_asserts.py"),
        (
            "return raise_assertions(positional) if self.signature.asserts else positional",
            "return positional",
            "tests/test_asserts.py",
        ),
        ("if (is_set() && first <= flat_block) return;", "", "tests/test_asserts.py"),
        ("--spin_budget < 0", "false", "tests/test_asserts.py"),
        (
            "    grid_barrier.leave();\n{% endif %}\n{% if kernel.waits_anywhere %}",
            "{% endif %}\n{% if kernel.waits_anywhere %}",
            "tests/test_asserts.py",
        ),
    ),
    *_rule(
        "a small launch on the CPU starts no thread",
        ("std::max(sizes) > 32768", "std::max(sizes) > 0", "tests/test_fork.py"),
        ("if (parallel: is_large(", "if (parallel: 1 || is_large(", "tests/test_fork.py"),
    ),
    *_rule(
        "names that a file passes on from a library are the library's",
        (
            "return self.reexports.library_name(qualified) or qualified",
            "return qualified",
            "tests/unit/frontend/test_reexports.py",
        ),
        ("if file.public is not None:", "if False:", "tests/unit/frontend/test_reexports.py"),
        (
            '{} if event.name.startswith("_") else {event.name: None}',
            "{event.name: None}",
            "tests/unit/frontend/test_reexports.py",
        ),
    ),
    *_rule(
        "one simulation runs at a time, and one at a breakpoint leaves the outer one's state",
        ("for state in states:", "for state in ():", "tests/unit/simulator/test_simulations_at_once.py"),
        (
            "after_in_child=_replace_lock",
            "after_in_parent=_replace_lock",
            "tests/unit/simulator/test_simulations_at_once.py",
        ),
    ),
    *_rule(
        "no statement is dropped unsaid",
        (
            "return self._elide(statement, ir.Elision.GRID)",
            "return ()",
            "tests/test_kernel_cases.py::test_translation_is_as_kept[grid_of_numba]",
        ),
        (
            "self.elided += elided_in(orelse, ir.Elision.UNREACHABLE)",
            "pass",
            "tests/test_kernel_cases.py::test_translation_is_as_kept[loop_else]",
        ),
        ('yield "statement", span', "pass", "tests/unit/ir/test_verify.py"),
        ('yield "target", locator.span(target)', "pass", "tests/unit/ir/test_verify.py"),
        ("            yield kind, span", "            yield from ()", "tests/unit/ir/test_verify.py"),
    ),
    *_rule(
        "the IR is verified by stage",
        ("id(node) not in unused", "node not in unused", "tests/unit/ir/test_verify.py"),
        ('yield f"nothing defines `{node.id}`", node.span', "pass", "tests/unit/ir/test_verify.py"),
        ('yield f"`{name}` is declared twice", stmt.span', "pass", "tests/unit/ir/test_verify.py"),
    ),
    *_rule(
        "the value of --dump-ir is taken with `=` alone",
        ('f"{arg}=" if arg == "--dump-ir" else arg', "arg", "tests/unit/cli/test_dump.py"),
        ('end = args.index("--") if "--" in args else len(args)', "end = len(args)", "tests/unit/cli/test_dump.py"),
    ),
    *_rule(
        "what a comment or a string says changes no code",
        ('_PRAGMA.sub("", comment).removeprefix("#")', 'comment.removeprefix("#")', "kept:comments"),
        ("if not _PRAGMA.fullmatch(comment))", "if True)", "kept:comments"),
        ('.endswith(("\\\\", "??/"))', '.endswith("??/")', "kept:comments_of_c_words"),
        ('.endswith(("\\\\", "??/"))', '.endswith("\\\\")', "kept:comments_of_c_words"),
        (
            'char if char.isprintable() else " "',
            "char",
            "tests/test_comments.py::test_what_comments_say_changes_no_code[while_bounds]",
        ),
        ('.replace("??", "?\\\\?")', "", "tests/unit/frontend/test_names.py"),
        ("first, *rest = wrap_line(line.code)", "first, *rest = wrap_line(line.text)", "kept:comments_of_c_words"),
        ("replace(allocations[name], start=start)", "ir.Alloc(name, start=start)", "kept:comments_of_c_words"),
        ('char if char.isalnum() else "_"', "char", "tests/unit/frontend/test_names.py"),
    ),
    *_rule(
        "more indices than axes come from one flat index, the last one fastest",
        ("slowest, *others = kernel.indices", "*others, slowest = kernel.indices", "cpu:flat_indices"),
        ("if len(tests) > 1:", "if False:", "kept:flat_indices"),
    ),
    *_rule(
        "functions are methods of elements, and bits are counted in the magnitude",
        (
            "row.rule is not Rule.LIKE and not isinstance",
            "row.rule is Rule.METHOD and not isinstance",
            "refused:element_functions",
        ),
        ("and method not in _NO_METHODS", "", "refused:element_functions"),
        ('ir.Call("builtins.abs"', 'ir.Call("builtins.int"', "cpu:element_functions"),
    ),
    *_rule(
        "an array that may be None is used where it is given",
        ("return where_true & where_false", "return where_true", "refused:optional_arrays"),
        ("return self.implied(left, outcome) & behind", "return behind", "refused:optional_arrays"),
        ("if assigned.count(name) == 1 and", "if", "refused:optional_arrays"),
        ("if (array->numel() == 0) return &empty;", "", "tests/unit/call/test_optional_arrays.py"),
    ),
    *_rule(
        "a number that may be None is used where it is given or assigned, and tested where nothing has assigned it",
        (".where_assigned([name])", "", "refused:optional_numbers"),
        ("known.where_assigned(assigned_names((stmt,)))", "known", "refused:optional_numbers"),
        (
            "self.given & other.given, self.original & other.original",
            "self.given & other.given, self.original | other.original",
            "refused:optional_numbers",
        ),
        (
            "return known.where_given([name]).where_assigned([name])",
            "return known.where_assigned([name])",
            "refused:optional_numbers",
        ),
        ('return f"{argument.presence_of}.has_value()"', 'return "true"', "cpu:optional_numbers"),
    ),
    *_rule(
        "arithmetic in an extent fixes a dimension, and a given output an integer that the call leaves out",
        ("scale, inner = (right, left)", "scale, inner = (left, right)", "cpu:extents_solved"),
        ("if self.measured:", "if False:", "tests/unit/call/test_measured_dims.py"),
        ("extent > rest && factor > 0", "factor > 0", "tests/unit/call/test_measured_dims.py"),
    ),
    *_rule(
        "arrays agree in leading dimensions, and an allocated output has their shape",
        ("shape[:1] = leading", "pass", "tests/unit/call/test_leading_dimensions.py"),
        ("if leading != expected:", "if False:", "tests/unit/call/test_leading_dimensions.py"),
        ("if (sizes != expected)", "if (false)", "tests/unit/call/test_leading_dimensions.py"),
        ("if leading and array.name in kernel.strided:", "if False:", "refused:variadic_dimension"),
    ),
    *_rule(
        "a strided array is indexed by strides, which count in the widths, and a written one does not overlap itself",
        ("if strides := kernel.strides_of(array):", "if strides := ():", "cpu:strided"),
        ("strided[call.function] |= {name for", "strided[call.function] &= {name for", "cpu:strided"),
        (
            "self.bounds += [bound for bound in (size, farthest) if bound]",
            "self.bounds += [size] if size else []",
            "tests/unit/call/test_layouts.py",
        ),
        ("        if overlaps_itself(tensors[name]):", "        if False:", "tests/unit/call/test_layouts.py"),
        ("        if (stride < span)", "        if (false)", "tests/unit/call/test_layouts.py"),
        (
            "gradient if name in self.call.signature.strided else gradient.contiguous()",
            "gradient.contiguous()",
            "tests/unit/call/test_layouts.py",
        ),
        ("view.vector_width and kernel.base_array(view.name) in kernel.strided", "False", "refused:strided_arrays"),
        ("if name not in (*arrays, *parameters.broken):", "if False:", "refused:strided_arrays"),
    ),
    *_rule(
        "an output may be an input of which each thread reads only the element that it alone writes",
        (
            "if len(elements) != 1 or (element := elements.pop()) is None:",
            "if (element := elements.pop()) is None:",
            "tests/test_ir_cases.py",
        ),
        ("{axes[name] for name in names} >= _launched_axes(kernel)", "True", "tests/test_ir_cases.py"),
        ("if extent != ir.constant_extent(1)", "if False", "tests/unit/call/test_in_place_pairs.py"),
        (
            "                return None\n            outcomes",
            "                pass\n            outcomes",
            "tests/test_ir_cases.py",
        ),
        ("for _ in range(1 + is_loop):", "for _ in range(1):", "tests/test_ir_cases.py"),
        ("if any(name in pair for pair in kernel.in_place):", "if False:", "kept:augmented"),
        (
            "in_place = () if on_grid else signature.in_place",
            "in_place = signature.in_place",
            "tests/unit/call/test_in_place.py",
        ),
        (
            "return a.data_ptr() == b.data_ptr() and _axes(a) == _axes(b)",
            "return True",
            "tests/unit/call/test_in_place.py",
        ),
        ("        check_recorded(self.signature, values)\n", "", "tests/unit/call/test_in_place.py"),
    ),
    *_rule(
        "what a text needs is what its code names",
        ("if spelled.casts_to:", "if False:", "kept:index_in_casts"),
        ("self.types.update(callee.template)\n        name", "name", "kept:index_in_casts"),
    ),
    *_rule(
        "narrow integers that may wrap around are warned of, once a line",
        ("return exact.low < dtype.low or exact.high > dtype.high", "return False", "refused:narrow_integers"),
        ("return exact.low < dtype.low or exact.high > dtype.high", "return True", "tests/test_ir_cases.py"),
        ("return is_modular or self.ranges.of(mask).is_natural", "return False", "tests/test_ir_cases.py"),
        ("if line not in self.lines:", "if True:", "refused:narrow_integers"),
        ("if not self._has_warned:", "if True:", "tests/unit/call/test_narrow_integer_warnings.py"),
    ),
    *_rule(
        "a cause of slow code has one note, and what compilers compute has none",
        ("if names.isdisjoint(self.causes):", "if True:", "tests/test_error_cases.py"),
        ("array.is_python_dtype and array.type.dtype is F64", "array.type.dtype is F64", "tests/test_error_cases.py"),
        ("if _is_constant(expr, self.constants):", "if False:", "tests/test_error_cases.py"),
        (
            "if quotient is not None:\n            return self.look_at",
            "if False:\n            return self.look_at",
            "tests/test_error_cases.py",
        ),
        ("return None if widest is F64 else widest", "return widest", "tests/test_error_cases.py"),
    ),
)
