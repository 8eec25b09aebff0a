"""Build and load what is compiled of translations, with a cache on disk.

`fill_cache` compiles what calls run, `build_library` the written files unless they are cached; `load` also loads these
as operators of torch. `doctor` examines the tools, `cache` stores what was compiled and translated. Errors:
`BuildError`, and `EnvironmentLacks` for a missing tool.
"""

from py2cu.build.instances import fill_cache
from py2cu.build.library import build_library, load
from py2cu.build.messages import BuildError

__all__ = ["BuildError", "build_library", "fill_cache", "load"]
