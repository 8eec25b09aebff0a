"""Run a kernel's own Python, thread by thread: the reference of `check`, through which a debugger can step.

`simulate` runs one launch and returns a `SimulationReport` with its `Finding`s. Its layers, each of which imports only
earlier ones: `findings`, `launch`, `state`, `values` (typed numbers), `memory` (arrays, atomics, races), `schedule`
(the order of threads), then the files beside `run.py`.
"""

from py2cu.simulator.deadline import TooLong
from py2cu.simulator.findings import Finding, SimulationError, TooManyOperations
from py2cu.simulator.launch import Launch, plan_launch
from py2cu.simulator.memory.writes import OutOfRange, Write
from py2cu.simulator.run import SimulationReport, SimulationWarning, simulate

__all__ = [
    "Finding",
    "Launch",
    "OutOfRange",
    "SimulationError",
    "SimulationReport",
    "SimulationWarning",
    "TooLong",
    "TooManyOperations",
    "Write",
    "plan_launch",
    "simulate",
]
