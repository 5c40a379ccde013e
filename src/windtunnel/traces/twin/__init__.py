"""A private twin of a trace: learn its statistics, share them, generate jobs from them."""

from windtunnel.traces.twin.fit import fit
from windtunnel.traces.twin.twin import Twin

__all__ = ["Twin", "fit"]
