"""Placements: where a job runs; one family a file."""

from windtunnel.placements.asked import CandidateNode, Request
from windtunnel.placements.catalogue import (
    PLACEMENTS,
    checked_topology,
    is_scored,
    label_of,
    placement,
    resolve_placement,
    split_placement,
    tree_of,
)

__all__ = [
    "PLACEMENTS",
    "CandidateNode",
    "Request",
    "checked_topology",
    "is_scored",
    "label_of",
    "placement",
    "resolve_placement",
    "split_placement",
    "tree_of",
]
