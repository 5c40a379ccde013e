"""The tables and the Spark session of the tests of the analyses."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "characterize"))

from backends import holdings, holed, on_spark

__all__ = ["holdings", "holed", "on_spark"]
