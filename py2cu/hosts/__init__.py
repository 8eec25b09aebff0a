"""Host functions: Python around kernels, as C++ in libtorch's own style.

`model` is what they consist of, `model/table.py` the torch operators that they may call. `functions.py` reads the head
of a function, and its body by `reading`. `text` places declarations and puts the functions of a file together. `live`
is what `@host` makes of a function.
"""
