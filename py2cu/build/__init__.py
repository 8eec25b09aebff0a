"""Build and load the libraries of translations, with a cache on disk.

`build_library` compiles artifacts unless they are cached, `load` also loads them as operators of torch. `doctor`
examines the tools, `cache` stores libraries and translations. Errors: `BuildError`, and `EnvironmentLacks` for a
missing tool.
"""

from py2cu.build.library import build_library, load
from py2cu.build.messages import BuildError

__all__ = ["BuildError", "build_library", "load"]
