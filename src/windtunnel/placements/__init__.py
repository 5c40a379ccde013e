"""Placements: where a job runs; one family a file."""

from windtunnel.placements.catalogue import PLACEMENTS, resolve_placement

__all__ = ["PLACEMENTS", "resolve_placement"]
