"""A private twin of a trace: learn its statistics, share them, generate jobs from them."""

from windtunnel.traces.twin.twin import Twin

__all__ = ["Twin"]  # its module has the reader of twins
