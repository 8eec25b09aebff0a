"""Host functions: Python around kernels, as C++ in libtorch's own style.

`table.py` lists the torch operators that they may call. `functions.py` reads the head of a function, and its body by
`statements.py` and `expressions.py`, which spell as they read: `arithmetic.py`, `operators.py`, `parts.py`, `calls.py`.
`layout.py` places declarations, `render.py` puts the functions of a file together. `live` is what `@host` makes of one.
"""
