"""Every composition of the language's forms with its leaves, compared with CPython: `python -m tests.enumerate --help`.

The rows are data: `leaves.py` (operands, and the functions that they call), `forms.py` (expressions), `statements.py`
(the positions in which an expression stands), `joins.py` (locals whose value comes over several paths, and who sees
them). A row is a text with places: `{a} + {b}`. `compose.py` lists all programs: triples (a row, one of its places, the
row in it), pairs (a row with two leaves), joins (a join of a join, under each observer), and a fixed sample of them.

A program is a kernel of one fixed signature. `arguments.py` has the rows of arrays that its threads get. `oracle.py` is
the judge: CPython runs the kernel on elements of the oracle's own class; nothing there comes from py2cu. `expected.py`
asks it for each thread and row, and chooses rows with which Python raises nothing. `simulated.py` compares py2cu's
simulator, and leaves out the rows of which it reports that they leave 64 bits. `launches.py` compiles many kernels
together and runs them in processes that may crash or hang. `judge.py` makes a `Verdict` of all that, `batches.py` runs
it in many processes, `report.py` counts. `in_place.py` is a table of its own: `k(x, out=x)`.

A program is fine if it agrees with CPython, is refused, or leaves 64 bits and the simulator says so. A program that
Python cannot run (a syntax error, or an error in every thread with every row) is left out. `results/` keeps the counts
of refusals by code, which must not grow, and pages of runs.
"""
