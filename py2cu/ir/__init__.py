"""The typed tree between the front end and the targets: what a kernel is made of.

`ir.Assign` and its like are the nodes, `ir.Kernel` holds them, `ir.PY_INT` and its like are the types of values; the
`__all__` of each file lists what it exports here. The files beside work on trees: `fields`, `visit`, `rewrite`,
`substitution`, `names`, `printer`, `verify`.
"""

from py2cu.ir.elisions import *  # noqa: F403
from py2cu.ir.expressions import *  # noqa: F403
from py2cu.ir.kernels import *  # noqa: F403
from py2cu.ir.statements import *  # noqa: F403
from py2cu.ir.types import *  # noqa: F403
