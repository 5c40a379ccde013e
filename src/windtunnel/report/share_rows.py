"""Rows of `windtunnel.characterize.states` made fewer; their sums stay."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Class of size -> the wider class that stands for it in short; others stay.
_COARSE = {
    **dict.fromkeys(("2", "3-4", "5-8"), "2-8"),
    **dict.fromkeys(("9-16", "17-32", "33-64"), "9-64"),
    **dict.fromkeys(("65-128", "129-256", "257-512"), "65-512"),
}
_SHARE_KEYS = ("num_jobs", "job_share", "gpu_time", "gpu_time_share")


def coarse(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return shares by size of the job with two or three classes in one, from 2 GPUs on."""
    found: dict[str, dict[str, Any]] = {}
    for row in rows:
        label = _COARSE.get(row["num_gpus"], row["num_gpus"])
        into = found.setdefault(label, {"num_gpus": label, **dict.fromkeys(_SHARE_KEYS, 0)})
        for key in _SHARE_KEYS:
            into[key] += row[key] or 0
    return list(found.values())


def folded(rows: Sequence[dict[str, Any]], by: str, top: int) -> list[dict[str, Any]]:
    """Return the first rows of a table of shares, and all others as one."""
    if len(rows) <= top + 1:
        return list(rows)
    rest = rows[top:]
    others = {key: sum(row[key] or 0 for row in rest) for key in _SHARE_KEYS}
    return [*rows[:top], {by: f"{len(rest):,} others", **others}]
