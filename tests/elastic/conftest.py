"""This folder on the path: tests are no package, but share modules; and hypothesis' profiles.

The default profile draws the same examples in every run; ``HYPOTHESIS_PROFILE=explore`` new ones.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent))

_SLOW = (HealthCheck.too_slow,)
settings.register_profile(
    "fixed", deadline=None, derandomize=True, database=None, suppress_health_check=_SLOW
)
settings.register_profile("explore", deadline=None, database=None, suppress_health_check=_SLOW)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))
