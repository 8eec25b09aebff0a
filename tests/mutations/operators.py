"""The mutations: a closed set of changes to anchored source, none of which quotes what stands there.

An operator offers numbered places. Number 0 is what the anchored source says as a whole: the test of an `if`, the
value of a `return`, the element of a display. Numbers from 1 on count the places inside it, the outermost first and
then from left to right: a change within an operand renumbers no other operand. Without a number, the first place is
meant.
"""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tests.mutations.cxx_conditions import Span, conditions


@dataclass(frozen=True)
class Place:
    """A field of a node, or an element of such a field; `owner` is the place of that node."""

    owner: Place | None
    parent: ast.AST
    field: str
    at: int | None = None

    @property
    def node(self) -> Any:
        value = getattr(self.parent, self.field)
        return value if self.at is None else value[self.at]

    @property
    def exists(self) -> bool:
        """False for an element that was dropped from the end of its list."""
        return self.at is None or self.at < len(getattr(self.parent, self.field))

    @property
    def role(self) -> tuple[type[ast.AST], str]:
        return type(self.parent), self.field

    def put(self, node: ast.AST) -> None:
        if self.at is None:
            setattr(self.parent, self.field, node)
        else:
            getattr(self.parent, self.field)[self.at] = node

    def below(self) -> Iterator[Place]:
        """The places of its node's parts, targets last, without suites and the cases of a `match`."""
        for field, value in sorted(ast.iter_fields(self.node), key=lambda item: item[0] in _TARGETS):
            for at, each in enumerate(value) if isinstance(value, list) else [(None, value)]:
                if isinstance(each, _PARTS):
                    yield Place(self, self.node, field, at)


@dataclass(frozen=True)
class CxxPlace:
    """A condition in a string of C++."""

    text: Place
    span: Span

    @property
    def node(self) -> ast.AST:
        start, end = self.span
        return ast.Constant(self.text.node.value[start:end])

    def put(self, node: ast.AST) -> None:
        text, (start, end) = self.text.node.value, self.span
        condition = str(node.value).lower() if isinstance(node, ast.Constant) else f"!({text[start:end]})"
        self.text.put(ast.Constant(text[:start] + condition + text[end:]))


@dataclass(frozen=True)
class Part:
    """An expression in a value, which it may replace."""

    whole: Place
    place: Place

    @property
    def node(self) -> ast.AST:
        return self.place.node


@dataclass(frozen=True)
class Texts:
    """All strings of the anchored source; a mutation finds its own by the text that it replaces."""

    places: tuple[Place, ...]

    @property
    def node(self) -> ast.AST:
        return ast.Tuple([place.node for place in self.places], ast.Load())


@dataclass(frozen=True)
class Operator:
    """`offer` lists the places in the anchored nodes, with None as number 0 if they have no whole."""

    meaning: str
    offer: Callable[[Sequence[Place]], list[Any]]
    change: Callable[[Any, str], None]
    takes_code: bool = False

    def places(self, roots: Sequence[Place]) -> dict[int, Any]:
        return {number: place for number, place in enumerate(self.offer(roots)) if place is not None}


# --- where ------------------------------------------------------------------------------------------------------------

_PARTS: Final = (ast.expr, ast.comprehension, ast.keyword, ast.pattern, ast.arguments, ast.arg, ast.withitem)
_TARGETS: Final = ("target", "targets", "optional_vars")
_SUBJECTS: Final = ("test", "guard", "value", "iter", "exc", "type", "subject")
_CONDITIONS: Final = {
    (ast.If, "test"), (ast.While, "test"), (ast.IfExp, "test"), (ast.Assert, "test"), (ast.match_case, "guard"),
    (ast.comprehension, "ifs"), (ast.BoolOp, "values"), (ast.Lambda, "body"), (ast.GeneratorExp, "elt"),
}  # fmt: skip
_ELEMENTS: Final = {
    (ast.BoolOp, "values"), (ast.BinOp, "left"), (ast.BinOp, "right"), (ast.Tuple, "elts"), (ast.List, "elts"),
    (ast.Set, "elts"), (ast.Dict, "values"), (ast.Call, "args"), (ast.Call, "keywords"), (ast.comprehension, "ifs"),
    (ast.MatchOr, "patterns"), (ast.JoinedStr, "values"),
}  # fmt: skip
_ITERABLES: Final = {(ast.For, "iter"), (ast.comprehension, "iter"), (ast.YieldFrom, "value"), (ast.Starred, "value")}


def _whole(roots: Sequence[Place]) -> Place | None:
    """What a single root says: its test, value, iterable or itself."""
    if len(roots) != 1:
        return None
    (root,) = roots
    if isinstance(root.node, ast.expr):
        return root
    return next((Place(root, root.node, field) for field in _SUBJECTS if hasattr(root.node, field)), None)


def _inside(roots: Iterable[Place]) -> Iterator[Place]:
    """The places below `roots`, level by level."""
    waiting = deque(roots)
    while waiting:
        below = [*waiting.popleft().below()]
        yield from below
        waiting += below


def _parts(roots: Sequence[Place], whole: Place | None) -> list[Place]:
    """The places that numbers from 1 on may mean; what is assigned to is none."""
    places = (*(roots if len(roots) > 1 else ()), *_inside(roots))
    return [place for place in places if place != whole and not _is_target(place)]


def _is_target(place: Place) -> bool:
    return any(each.field in _TARGETS for each in (place, *_owners(place)))


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _offer_conditions(roots: Sequence[Place]) -> list[Any]:
    whole = _whole(roots)
    texts = [place for place in (whole, *_parts(roots, whole)) if place is not None and _is_text(place.node)]
    inside = [place for place in _parts(roots, whole) if place.role in _CONDITIONS and not _is_text(place.node)]
    cxx = [CxxPlace(text, span) for text in texts for span in conditions(text.node.value)]
    return [None if whole in texts else whole, *inside, *cxx]


def _offer_tests(roots: Sequence[Place]) -> list[Any]:
    """The conditions that stand there: a `case` without a guard has none."""
    return [None if place is None or place.node is None else place for place in _offer_conditions(roots)]


def _offer_elements(roots: Sequence[Place]) -> list[Any]:
    """Number 0 is a statement, an element, or the line of a template."""
    whole = roots[0] if len(roots) == 1 and (roots[0].at is not None or roots[0].owner is None) else None
    return [whole, *filter(_is_element, _parts(roots, whole))]


def _is_element(place: Place) -> bool:
    if isinstance(place.parent, ast.Compare):
        return len(place.parent.ops) > 1
    return place.role in _ELEMENTS


def _offer_iterables(roots: Sequence[Place]) -> list[Any]:
    whole = _whole(roots)
    return [whole, *(place for place in _parts(roots, whole) if place.role in _ITERABLES)]


def _offer_values(roots: Sequence[Place]) -> list[Any]:
    whole = _whole(roots)
    return [whole, *(place for place in _parts(roots, whole) if isinstance(place.node, ast.expr))]


def _offer_parts(roots: Sequence[Place]) -> list[Any]:
    whole, *places = _offer_values(roots)
    return [None, *(Part(whole, place) for place in places if whole in _owners(place))]


def _offer_texts(roots: Sequence[Place]) -> list[Any]:
    texts = tuple(place for place in (*roots, *_inside(roots)) if _is_text(place.node))
    return [Texts(texts)] if texts else []


def _owners(place: Place) -> Iterator[Place]:
    while place.owner is not None:
        place = place.owner
        yield place


def _nodes(accepts: Callable[[Any], bool]) -> Callable[[Sequence[Place]], list[Any]]:
    """An operator that needs a certain node has no whole: its places are counted from 1."""
    return lambda roots: [None, *(place for place in (*roots, *_inside(roots)) if accepts(place.node))]


def _is_choice(node: ast.AST) -> bool:
    return isinstance(node, ast.IfExp)


def _has_argument(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and bool(node.args)


def _has_object(node: ast.AST) -> bool:
    function = node.func if isinstance(node, ast.Call) else None
    return isinstance(function, ast.Attribute) or isinstance(node, ast.Subscript | ast.Attribute)


def _can_swap(node: ast.AST) -> bool:
    match node:
        case ast.BinOp() | ast.IfExp():
            return True
        case ast.Compare(ops=items) | ast.Dict(values=items):
            return len(items) == (1 if isinstance(node, ast.Compare) else 2)
        case ast.Call(args=items) | ast.Tuple(elts=items) | ast.List(elts=items):
            return len(items) > 1
    return False


# --- what -------------------------------------------------------------------------------------------------------------


def _put(make: Callable[[Any], ast.AST]) -> Callable[[Any, str], None]:
    return lambda place, _: place.put(make(place.node))


def _negated(node: ast.expr) -> ast.expr:
    match node:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return operand
    return ast.UnaryOp(ast.Not(), node)


def _drop(place: Place, _: str) -> None:
    parent, at = place.parent, place.at
    match parent:
        case _ if isinstance(place.node, ast.stmt):
            place.put(ast.Pass())
        case ast.BinOp(left=left, right=right):
            _owner(place).put(right if place.field == "left" else left)
        case ast.Compare(left=left, comparators=others):
            operands, dropped = [left, *others], 0 if at is None else at + 1
            del operands[dropped], parent.ops[max(dropped - 1, 0)]
            parent.left, *parent.comparators = operands
        case _ if at is None:
            place.put(ast.Constant(""))  # a line of a template
        case _:
            _remove(place, at)


def _remove(place: Place, at: int) -> None:
    elements = getattr(place.parent, place.field)
    del elements[at]
    if isinstance(place.parent, ast.Dict):
        del place.parent.keys[at]
    if isinstance(place.parent, ast.BoolOp | ast.MatchOr) and len(elements) == 1:
        _owner(place).put(elements[0])


def _owner(place: Place) -> Place:
    assert place.owner is not None
    return place.owner


def _swap(place: Place, _: str) -> None:
    node = place.node
    match node:
        case ast.BinOp():
            node.left, node.right = node.right, node.left
        case ast.Compare():
            node.left, node.comparators[0] = node.comparators[0], node.left
        case ast.IfExp():
            node.body, node.orelse = node.orelse, node.body
        case ast.Dict(values=items) | ast.Call(args=items) | ast.Tuple(elts=items) | ast.List(elts=items):
            items[:2] = items[1::-1]


def _object(node: ast.Call | ast.Subscript | ast.Attribute) -> ast.expr:
    source = node.func if isinstance(node, ast.Call) else node
    assert isinstance(source, ast.Subscript | ast.Attribute)
    return source.value


def _only(part: Part, _: str) -> None:
    part.whole.put(part.node)


def _put_code(place: Place, code: str) -> None:
    place.put(ast.parse(code, mode="eval").body)


def _replace_text(texts: Texts, code: str) -> None:
    old, _, new = code.partition(" ->")
    found = [place for place in texts.places if old in place.node.value]
    if len(found) != 1 or found[0].node.value.count(old) != 1:
        raise ValueError(f"`{old}` does not occur once in the strings")
    found[0].put(ast.Constant(found[0].node.value.replace(old, new.removeprefix(" "))))


OPERATORS: Final = {
    "never": Operator("the condition is False", _offer_conditions, _put(lambda _: ast.Constant(False))),
    "always": Operator("the condition is True", _offer_conditions, _put(lambda _: ast.Constant(True))),
    "negate": Operator("the condition is negated", _offer_tests, _put(_negated)),
    "drop": Operator("a statement becomes `pass`; an operand, element, argument or line goes", _offer_elements, _drop),
    "empty": Operator("the iterable is empty", _offer_iterables, _put(lambda _: ast.Tuple([], ast.Load()))),
    "then": Operator("the choice is its first branch", _nodes(_is_choice), _put(lambda choice: choice.body)),
    "else": Operator("the choice is its second branch", _nodes(_is_choice), _put(lambda choice: choice.orelse)),
    "argument": Operator("the call is its first argument", _nodes(_has_argument), _put(lambda call: call.args[0])),
    "object": Operator("the method's call, item or attribute is its object", _nodes(_has_object), _put(_object)),
    "swap": Operator("two operands, branches, elements or arguments change places", _nodes(_can_swap), _swap),
    "only": Operator("the value is one of its parts", _offer_parts, _only),
    "value": Operator("the value is the given expression", _offer_values, _put_code, takes_code=True),
    "text": Operator("a part of a string is another: `old -> new`", _offer_texts, _replace_text, takes_code=True),
}
