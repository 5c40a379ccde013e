"""Hypothesis' profiles, and this folder on the path: tests are no package, but share modules.

The default profile draws the same examples in every run, so that a build cannot fail by chance.
``HYPOTHESIS_PROFILE=explore`` draws new ones, many more.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent))

_SLOW_FIRST_CALL = (HealthCheck.too_slow,)  # the kernels load in the first example
settings.register_profile(
    "fixed", deadline=None, derandomize=True, database=None, suppress_health_check=_SLOW_FIRST_CALL
)
settings.register_profile(
    "explore", deadline=None, database=None, suppress_health_check=_SLOW_FIRST_CALL
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))
