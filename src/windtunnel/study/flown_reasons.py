"""`with_flown_reasons`: why jobs waited, from the replay of their site, where the log is silent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from windtunnel.predictors.features import numbers
from windtunnel.study.recording import Recording
from windtunnel.study.simulate import fly
from windtunnel.study.verdict import Verdict

if TYPE_CHECKING:
    from windtunnel.site.conditions import Conditions

#: Where each row stood in the log, while its jobs are flown; no column of a log has this name.
_PLACE = "\0place"


def with_flown_reasons(jobs: pa.Table, conditions: Conditions) -> tuple[pa.Table, tuple[str, ...]]:
    """Say why jobs waited by a replay under their own Slurm, where the log gives no ``reason``.

    Args:
        jobs: a jobs table (`windtunnel.schema`), its starts as recorded.
        conditions: under which they were recorded; the policy is slurm.

    Returns:
        The jobs, with the last reason of those that waited in the replay, too; and what to note of
        it, one sentence each. A log that names any reason itself is left as it is, and so is one
        whose replay does not stand for it (`windtunnel.study.verdict`). Arrays' own limits, which
        a log tells by its reasons alone, are not known to the replay.
    """
    reasons = jobs["reason"].to_pylist() if "reason" in jobs.column_names else [None] * len(jobs)
    if any(word not in {None, "", "None"} for word in reasons):
        return jobs, ()
    placed = jobs.append_column(_PLACE, pa.array(np.arange(len(jobs))))
    recording = Recording.of(placed, with_cpu_jobs=True)
    if not recording.has_starts or not len(recording.jobs):
        return jobs, ()
    flown = recording.jobs.drop_columns([_PLACE])
    outcome = fly(flown, conditions)
    recorded = numbers(flown, "start_time") - recording.submitted
    verdict = Verdict.of(recording.waits(outcome), recorded)
    if not verdict.stands:
        note = (
            "The log names no reason for a wait, and the replay under the site's Slurm does not "
            "stand for it (`windtunnel validate`): all waits are split by the rule."
        )
        return jobs, (note, *outcome.notes)
    for row, place in enumerate(recording.jobs[_PLACE].to_pylist()):
        reasons[place] = outcome.wait_reasons.get(row)
    column = pa.array(reasons, pa.string())
    if "reason" in jobs.column_names:
        jobs = jobs.drop_columns(["reason"])
    note = "The log names no reason for a wait: those given are of a replay under the site's Slurm."
    return jobs.append_column("reason", column), (note, *outcome.notes)
