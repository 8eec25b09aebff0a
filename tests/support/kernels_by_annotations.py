"""Signatures of kernels that the tests hand to the simulator alone, read from live annotations."""

import ast
import inspect
import threading
from dataclasses import replace

from py2cu.dtypes import Kind
from py2cu.ir.abi.parameters import Role
from tests.support.kernels_by_hand import array, scalar, signature

LAUNCH = ("blockIdx", "threadIdx", "blockDim", "gridDim")
KINDS = {int: Kind.INT, float: Kind.FLOAT, bool: Kind.BOOL}


def signature_of(function, text=None):
    """Every array is given and written in place; every launch names grid and block."""
    annotations = inspect.get_annotations(function, eval_str=True)
    places = [name for name in inspect.signature(function).parameters if name not in LAUNCH]
    parameters, found = [], {"shared": None, "barrier": None}
    for name in places:
        match annotations[name]:
            case threading.Barrier:
                found["barrier"] = name
            case kind if kind in KINDS:
                parameters.append(scalar(name, KINDS[kind]))
            case tensor if name == "shared":
                found["shared"] = _array(name, tensor)
            case tensor:
                parameters.append(_array(name, tensor))
    launch = [name for name in LAUNCH if name in inspect.signature(function).parameters]
    made = signature(parameters, launch=launch, size=("n",))
    return replace(made, allocs=_made_arrays(text), **found)


def _array(name, tensor):
    return array(name, tensor.dtypes[0], tensor.dim_str, Role.INOUT)


def _made_arrays(text):
    """The lines of `tile = shared(...)`."""
    nodes = ast.walk(ast.parse(text or ""))
    made = (node for node in nodes if isinstance(node, ast.Assign) and "shared(" in ast.unparse(node.value))
    targets = ((node.lineno, node.targets[0]) for node in made)
    return tuple((n, ast.unparse(name)) for n, target in targets for name in getattr(target, "elts", [target]))
