"""The mutation rows are up to date: every anchor is in the source once, every mutation applies, every case exists.

That each case fails with the mutation, `python -m tests.mutations` shows.
"""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest

from tests.mutations.anchors import Anchor, change, find_anchors, mutated, offers, open_source
from tests.mutations.rows import FOLDERS, parse, read_rules

ROOT = Path(__file__).parents[1]
MUTATIONS = read_rules()
ANCHORS = find_anchors(ROOT)


def test_anchors_and_rows_name_each_other() -> None:
    """A name stands beside one line of the source, and a row uses it."""
    assert Counter(anchor.name for anchor in ANCHORS) == Counter({mutation.anchor for mutation in MUTATIONS})


def test_each_mutation_changes_its_source() -> None:
    anchors = {anchor.name: anchor for anchor in ANCHORS}
    texts = {anchor.path: (ROOT / anchor.path).read_text(encoding="utf-8") for anchor in ANCHORS}
    for mutation in MUTATIONS:
        anchor = anchors[mutation.anchor]
        source = open_source(texts[anchor.path], anchor)
        before = source.head
        change(source, mutation)
        assert source.head != before, mutation


def test_rows_differ() -> None:
    assert [row for row, count in Counter(map(str, MUTATIONS)).items() if count > 1] == []


def test_every_rule_has_two_mutations() -> None:
    assert [rule for rule, count in Counter(mutation.rule for mutation in MUTATIONS).items() if count < 2] == []


def test_the_cases_exist() -> None:
    for case in {case for mutation in MUTATIONS for case in mutation.cases}:
        how, _, name = case.partition(":")
        path = f"tests/cases/{FOLDERS[how]}/{name.partition('.')[0]}.case" if how in FOLDERS else how
        assert (ROOT / path).exists(), case


# --- operators --------------------------------------------------------------------------------------------------------

HELPER = '''
TEXT = """
if (a && b) return 0;
return c ? a : b;
"""
'''


@pytest.mark.parametrize(
    ("source", "change_", "result"),
    [
        ("if a and b: pass", "never", "if False:\n    pass"),
        ("if a and b: pass", "always 2", "if a and True:\n    pass"),
        ("return a or (b and c)", "never 4", "return a or (b and False)"),
        ("match a:\n    case 1:\n        pass", "never", "match a:\n\n    case 1 if False:\n        pass"),
        ("x = [a for a in b if a > 0]", "always 1", "x = [a for a in b if True]"),
        ("while not a: pass", "negate", "while a:\n    pass"),
        ("f(a)", "drop", "pass"),
        ("f(a, b, key=c)", "drop 3", "f(a, b)"),
        ("return a and b and c", "drop 2", "return a and c"),
        ("return a and b", "drop 2", "return a"),
        ("return a + b - c", "drop 2", "return a + b"),
        ("return a <= b < c", "drop 1", "return b < c"),
        ("for a in b: pass", "empty", "for a in ():\n    pass"),
        ("x = a if b else c", "then", "x = a"),
        ("x = a if b else c", "else", "x = c"),
        ("return self.f(a, b)", "argument", "return a"),
        ("return a.f(b).g(c)", "object", "return a.f(b)"),
        ("x = a[0]", "object", "x = a"),
        ("a, b = c, d", "swap", "a, b = (d, c)"),
        ("return f(a, b)", "only 3", "return b"),
        ("return a + 1", "value 2: 2", "return a + 2"),
        ("x = a", "value: 0.0", "x = 0.0"),
        ("x = 'ab'", "text: b -> c", "x = 'ac'"),
        (HELPER, "never 2", HELPER.replace("c ?", "false ?")),
        (HELPER, "always 3", HELPER.replace("a &&", "true &&")),
    ],
)
def test_operators(source: str, change_: str, result: str) -> None:
    line = next(number for number, text in enumerate(source.splitlines(), 1) if text.strip() not in ("", "match a:"))
    changed = mutated(source, Anchor("name", Path("a.py"), line), parse("rule", "name", change_))
    assert ast.dump(ast.parse(changed)) == ast.dump(ast.parse(result))


def test_an_anchor_within_brackets_holds_its_line() -> None:
    source = "x = f(\n    a,\n    b and c,\n    d,\n)\n"
    changed = mutated(source, Anchor("name", Path("a.py"), 3), parse("rule", "name", "never"))
    assert changed == "x = f(a, False, d)\n"


def test_an_anchor_beside_a_closing_bracket_holds_the_statement() -> None:
    source = "if (\n    a\n    and b\n):\n    pass\n"
    changed = mutated(source, Anchor("name", Path("a.py"), 4), parse("rule", "name", "never"))
    assert changed == "if False:\n    pass\n"


def test_a_line_of_a_template() -> None:
    anchor = Anchor("name", Path("a.j2"), 2)
    source = "{# rule: name #}\n    if (a && b) return;\n"
    assert mutated(source, anchor, parse("rule", "name", "always 2")) == source.replace("a &&", "true &&")
    assert mutated(source, anchor, parse("rule", "name", "drop")) == "{# rule: name #}\n"


def test_what_an_anchor_offers() -> None:
    offered = dict(offers("return a and f(b)\n", Anchor("name", Path("a.py"), 1)))
    assert offered["never 2"] == "return a and False"
    assert offered["argument"] == "return a and b"
