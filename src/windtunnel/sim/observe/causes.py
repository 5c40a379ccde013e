"""Why jobs waited, cause by cause: the pieces of each wait, from a recording's rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windtunnel.sim.observe.decisions import WAITING

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class Piece:
    """One row of a recording, and until when it holds.

    Attributes:
        start, end: s; the end is None of a job's last row.
        verdict, limit, blocker, promise, free_gpus: as in the row.
    """

    start: float
    end: float | None
    verdict: str
    limit: str | None
    blocker: str | None
    promise: float | None
    free_gpus: float | None

    @property
    def waits(self) -> bool:
        """Whether the job waits in it."""
        return self.verdict in WAITING

    @property
    def seconds(self) -> float:
        """How long it is; 0 of the last."""
        return 0.0 if self.end is None else self.end - self.start


def pieces(rows: pa.Table) -> list[Piece]:
    """Return one job's rows with where each ends."""
    names = ("verdict", "limit", "blocker", "promise", "free_gpus")
    found: list[dict[str, Any]] = rows.to_pylist()
    ends = [*(row["time"] for row in found[1:]), None]
    return [
        Piece(row["time"], end, *(row[name] for name in names))
        for row, end in zip(found, ends, strict=True)
    ]


def seconds_by_cause(of: Sequence[Piece]) -> dict[tuple[str, str | None], float]:
    """Return the seconds that one job waited for each (verdict, limit), in order of time."""
    found: dict[tuple[str, str | None], float] = {}
    for piece in of:
        if piece.waits and piece.seconds:
            cause = piece.verdict, piece.limit
            found[cause] = found.get(cause, 0.0) + piece.seconds
    return found


def causes(decisions: pa.Table) -> pa.Table:
    """Return how long each job waited for what.

    Args:
        decisions: `windtunnel.sim.observe.decisions.decisions`.

    Returns:
        Columns ``row``, ``verdict``, ``limit``, ``seconds``; those of a job add up to all the time
        that it waited, also after it was stopped. A wait that is not over counts to the last row.
    """
    row = decisions["row"].to_numpy()
    order = np.argsort(row, kind="stable")
    time = decisions["time"].to_numpy()[order]
    same = np.append(row[order][1:] == row[order][:-1], False)
    seconds = np.where(same, np.append(time[1:], 0.0) - time, 0.0)
    table = decisions.select(["row", "verdict", "limit"]).take(pa.array(order))
    table = table.append_column("seconds", pa.array(seconds)).unify_dictionaries()
    verdict = np.asarray(table["verdict"].cast(pa.string()).to_pylist(), dtype=object)
    keep = np.isin(verdict.astype(str), WAITING) & (seconds > 0)
    kept = table.filter(pa.array(keep))
    kept = kept.set_column(1, "verdict", kept["verdict"].cast(pa.string()))
    kept = kept.set_column(2, "limit", kept["limit"].cast(pa.string()))
    found = kept.group_by(["row", "verdict", "limit"], use_threads=False)
    return found.aggregate([("seconds", "sum")]).rename_columns(
        ["row", "verdict", "limit", "seconds"]
    )
