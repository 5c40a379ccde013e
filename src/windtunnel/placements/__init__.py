"""Placements: where a job runs; one family a file."""

from windtunnel.placements.catalogue import (
    PLACEMENTS,
    checked_topology,
    is_scored,
    resolve_placement,
    split_placement,
)

__all__ = ["PLACEMENTS", "checked_topology", "is_scored", "resolve_placement", "split_placement"]
