"""Reports kernels that exist only after the file has run, so that none is left out silently.

    k = kernel(f)                                     a call creates a kernel
    k = cuda.jit("void(f4[:])")(f)                    so does Numba's
    silu.backward(f)                                  another one
    @layers.silu.backward                             whether this is a kernel, another file says
    either = kernel(block=64) if small else kernel    the options of `@either` are known only at run time

In: a module. Out: diagnostics, and whether one of them is an error. If the file has kernels that the source shows, a
call that creates another one is only noted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import libcst as cst

from py2cu.diagnostics import Reporter
from py2cu.frontend.names.ambiguity import report_ambiguous_name
from py2cu.frontend.names.environment import Environment
from py2cu.frontend.names.syntax import WITHOUT_NAMES, Statement, flatten, source_text
from py2cu.frontend.source.reader import KERNEL_DECORATOR, NUMBA_DECORATOR, KernelSource, Module, launches

_HINT = "write `@kernel(…)` above the `def`, or a name that is bound once, to `kernel(…)`, in a line that always runs"


def report_dynamic_kernels(module: Module, only: str | None, reporter: Reporter) -> bool:
    """Report the dynamic kernels of `module`, or the one named `only`; True if one of them is an error."""
    refused = False
    has_others = only is None and bool(module.kernels)
    for source in module.functions:
        if source.decorator is None and only in (None, source.function.name.value):
            refused |= _refuse_decorators(source, module, reporter)
    for call, function in _kernel_calls(module):
        if only in (None, function):
            what = f"`{function}` becomes a kernel only when this call runs, and py2cu does not run the file"
            decorator = "@cuda.jit(…)" if _is_numba_jit(call.func, module.environment) else "@kernel(…)"
            hint = f"write `{decorator}` above `def {function}`" if function.isidentifier() else f"write `{decorator}`"
            (reporter.note if has_others else reporter.error)("P107", what, module.span(call), hint)
            refused |= not has_others
    return refused


def _refuse_decorators(source: KernelSource, module: Module, reporter: Reporter) -> bool:
    early = source.environment.as_defined()
    for decorator in source.function.decorators:
        node = decorator.decorator
        if (forward := _foreign_forward(node, early)) is not None:
            what = f"whether `{forward}` is a kernel is known only by importing it, which py2cu does not do"
            name = source.function.name.value
            hint = f"write `@kernel` above `def {name}`, and `{forward}.backward({name})` below the function"
            reporter.error("P205", what, module.span(node), hint)
            return True
        if not _mentions_kernel(node, early, set()):
            continue
        if not report_ambiguous_name(node, early, reporter, module.span, _HINT):
            name = source.function.name.value
            what = f"whether `{name}` is a kernel depends on running the file, which py2cu does not do"
            reporter.error("P205", what, module.span(node), _HINT)
        return True
    return False


def _foreign_forward(node: cst.BaseExpression, scope: Environment) -> str | None:
    """The object of another file, as the source names it, whose `backward` the decorator `node` is."""
    definition = scope.decorator(node)
    match definition.func if isinstance(definition, cst.Call) else definition:
        case cst.Attribute(value=owner, attr=cst.Name(value="backward")) if scope.qualify(owner) is not None:
            return source_text(owner)
    return None


def _mentions_kernel(node: cst.CSTNode, scope: Environment, seen: set[str]) -> bool:
    """True if `node`, or the value of a name in it, mentions `kernel`."""
    match node:
        case cst.Attribute() | cst.Name() if scope.qualify(node) == KERNEL_DECORATOR:
            return True
        case cst.Attribute(value=value) | cst.Arg(value=value):
            return _mentions_kernel(value, scope, seen)
        case cst.Name(value=name):
            if name in seen:
                return False
            seen.add(name)
            if name in scope.functions:
                function = scope.functions[name]
                return _mentions_kernel(function.body, scope.inner(function), seen)
            places = scope.ambiguous.get(name, ())
            if any(place.meaning == KERNEL_DECORATOR for place in places):
                return True
            parts = (scope.definition(name), *(part for place in places for part in (place.meaning, place.node)))
            return any(_mentions_kernel(part, scope, seen) for part in parts if isinstance(part, cst.CSTNode))
        case _:
            return any(_mentions_kernel(child, scope, seen) for child in node.children)


def _kernel_calls(module: Module) -> Iterator[tuple[cst.Call, str]]:
    """The calls that create kernels when the file runs, each with the text of its function."""
    for statement in _statements(module.body):
        match statement:
            case cst.Assign(value=value) | cst.AnnAssign(value=cst.BaseExpression() as value) | cst.Expr(value=value):
                for call in _calls(value):
                    function = _wrapped_function(call)
                    if function is None:
                        continue
                    makes = _makes_kernels(call.func, module.environment) or _launches(call, function, module)
                    if makes or _attaches_function(call, function, module):
                        yield call, source_text(function)


def _is_numba_jit(function: cst.BaseExpression, scope: Environment) -> bool:
    """True for `cuda.jit`, and for `cuda.jit(…)` with a signature or options."""
    return scope.qualify(function.func if isinstance(function, cst.Call) else function) == NUMBA_DECORATOR


def _launches(call: cst.Call, function: cst.BaseExpression, module: Module) -> bool:
    """True for `cuda.jit(f)`, `cuda.jit(…)(f)` of a function that Numba launches."""
    node = module.environment.functions.get(function.value) if isinstance(function, cst.Name) else None
    if node is None or node.decorators or not _is_numba_jit(call.func, module.environment):
        return False
    return launches(node, call.func, module.environment)


def _attaches_function(call: cst.Call, function: cst.BaseExpression, module: Module) -> bool:
    """True for `silu.backward(f)` where `f` is not known as a kernel."""
    scope = module.environment
    node = scope.functions.get(function.value) if isinstance(function, cst.Name) else None
    return scope.forward(call.func) is not None and all(source.function is not node for source in module.kernels)


def _wrapped_function(call: cst.Call) -> cst.BaseExpression | None:
    """The function argument of a call of `kernel`; None if it has only options."""
    return next((arg.value for arg in call.args if arg.keyword is None or arg.keyword.value == "function"), None)


def _makes_kernels(function: cst.BaseExpression, scope: Environment) -> bool:
    """True for `kernel`, for `kernel(…)` with options, and for names that are, or may be, bound to these."""
    definition = scope.decorator(function)
    places = scope.as_defined().ambiguous.get(definition.value, ()) if isinstance(definition, cst.Name) else ()
    for meaning in (definition, *(place.meaning for place in places)):
        if meaning == KERNEL_DECORATOR or (isinstance(meaning, cst.BaseExpression) and _is_maker(meaning, scope)):
            return True
    return False


def _is_maker(node: cst.BaseExpression, scope: Environment) -> bool:
    maker = node.func if isinstance(node, cst.Call) and _wrapped_function(node) is None else node
    return scope.qualify(maker) == KERNEL_DECORATOR


def _statements(body: Iterable[Statement]) -> Iterator[Statement]:
    """The statements that run when the file does, those of its classes too."""
    for statement in flatten(body):
        yield statement
        if isinstance(statement, cst.ClassDef):
            yield from _statements(statement.body.body)


def _calls(node: cst.CSTNode) -> Iterator[cst.Call]:
    if node.__class__ in WITHOUT_NAMES:
        return
    if isinstance(node, cst.Call):
        yield node
    if not isinstance(node, cst.Lambda):
        for child in node.children:
            yield from _calls(child)
