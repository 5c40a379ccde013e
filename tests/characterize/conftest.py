"""This folder on the path: tests are no package, but share modules; and the backends."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from backends import backend, holdings, holed, on_spark

__all__ = ["backend", "holdings", "holed", "on_spark"]
