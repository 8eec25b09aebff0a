"""The folder of the cache on disk: libraries and translations.

In: environment variables. Out: a path, which may not exist yet.
"""

from __future__ import annotations

import os
from pathlib import Path


def location() -> Path:
    """The root: `PY2CU_CACHE_DIR`, else the user's cache directory of this platform."""
    if named := os.environ.get("PY2CU_CACHE_DIR"):
        return Path(named).expanduser().absolute()
    import platformdirs

    return Path(platformdirs.user_cache_dir("py2cu"))
