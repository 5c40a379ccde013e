"""Placements: where a job runs; one family a file."""

from windtunnel.placements.catalogue import (
    PLACEMENTS,
    is_scored,
    resolve_placement,
    split_placement,
)

__all__ = ["PLACEMENTS", "is_scored", "resolve_placement", "split_placement"]
