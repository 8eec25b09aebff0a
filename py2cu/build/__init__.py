"""Compile and load what was translated, with a cache on disk.

Calls run single instances of kernels (`cpu_entry`, `cuda_kernel`), which `instances` compiles beforehand; written files
become libraries of operators (`library`). Errors: `BuildError` of `messages`, `EnvironmentLacks` for a missing tool.
"""
