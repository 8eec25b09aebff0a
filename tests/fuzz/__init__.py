"""Random kernels of the whole language, compiled and compared with CPython: `python -m tests.fuzz --help`.

`writer.py` holds what a kernel under construction knows, `expressions.py` and `statements.py` the grammar (a table of
productions each: a new construct is one entry), `whole_numbers.py` those about bounds, `lists.py` those about lists,
`order.py` those whose operands act, `functions.py` the device functions, `shapes.py` the extents of launches and
arrays, `remarks.py` comments and docstrings, `redefinitions.py` a later notebook cell that changes what a kernel was
translated from, `kernels.py` the strategy.
`judge.py` compiles many at once (`tests/support/libraries.py`) and compares, `shrink.py` finds the least kernel that
fails, `__main__.py` is the long run.
"""
