"""Hypothesis' profiles, and this folder on the path: tests are no package, but share modules.

The default profile draws the same files in every run, so that a build cannot fail by chance.
``HYPOTHESIS_PROFILE=explore`` draws new ones, twenty times as many.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent))

_SLOW = (HealthCheck.too_slow, HealthCheck.data_too_large)  # a field of a million characters is
settings.register_profile(
    "fixed", deadline=None, derandomize=True, database=None, suppress_health_check=_SLOW
)
settings.register_profile("explore", deadline=None, database=None, suppress_health_check=_SLOW)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))
