"""The small functions that a kernel may need where C++ computes otherwise than Python."""
