"""Measurements of a cluster over time, read as a stream of samples.

One reader a format; every one gives `windtunnel.companions.SAMPLE_COLUMNS`. What the samples say
is a matter of `windtunnel.characterize`.
"""

from windtunnel.telemetry import published
from windtunnel.telemetry.open import TELEMETRY_FORMATS, open_telemetry
from windtunnel.telemetry.stream import Telemetry

__all__ = ["TELEMETRY_FORMATS", "Telemetry", "open_telemetry", "published"]
