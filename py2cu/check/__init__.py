"""Check that compiled kernels agree with their Python, over invented cases or a user's arguments.

`check_kernel` runs each `Case` in the simulator and compiled, compares every element, and returns a `CheckReport`.
Importing this package imports torch.
"""

from py2cu.check.cases import Case, invent_cases, make_case, user_case
from py2cu.check.differences import Fault
from py2cu.check.gradients import check_gradients
from py2cu.check.of_call import check_call, small_values_of
from py2cu.check.permutations import names_of_group, written_arrays
from py2cu.check.progress import progress_bar
from py2cu.check.report import CheckReport, Mismatch, Verdict
from py2cu.check.run import check_kernel
from py2cu.check.sizes import small_values

__all__ = [
    "Case",
    "CheckReport",
    "Fault",
    "Mismatch",
    "Verdict",
    "check_call",
    "check_gradients",
    "check_kernel",
    "invent_cases",
    "make_case",
    "names_of_group",
    "progress_bar",
    "small_values",
    "small_values_of",
    "user_case",
    "written_arrays",
]
