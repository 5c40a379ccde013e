"""This folder on the path: tests are no package, but share modules; and the backends and tables."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from backends import backend, holdings, holed, on_spark
from used_tasks import nodes, tasks

__all__ = ["backend", "holdings", "holed", "nodes", "on_spark", "tasks"]
