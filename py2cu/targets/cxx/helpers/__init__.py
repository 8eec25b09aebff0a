"""Helpers: small functions for operations that C++ computes differently than Python."""
