"""Which workloads are drawn? As many as colours can tell apart, and none that says nothing.

A kind of work with next to no jobs and next to no GPU time gives no distribution: the authors of
AcmeTrace leave the 8 SFT jobs of Kalos out of their figures, percentages included. Where there are
more kinds than colours, the smaller ones are drawn as one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from windtunnel.characterize.population import NONE
from windtunnel.characterize.states import workload_mix
from windtunnel.report.format import count
from windtunnel.report.names import labels

if TYPE_CHECKING:
    import pyarrow as pa

#: Kinds of work in one figure.
MOST = 8
#: A kind below both shares is not drawn: of the GPU jobs, and of their GPU time, percent.
FEW_JOBS = 0.1
FEW_GPU_TIME = 1.0


@dataclass(frozen=True)
class Chosen:
    """The workloads of a trace that are drawn.

    Attributes:
        jobs: the jobs table with ``workload`` as it is drawn: harmless names, the smaller kinds
            under one, null where a job's kind is not drawn.
        jobs_of: GPU jobs of each name, most first.
        notes: what is not drawn, or drawn as one.
    """

    jobs: pa.Table
    jobs_of: dict[str, int]
    notes: tuple[str, ...]


def chosen_workloads(jobs: pa.Table) -> Chosen:
    """Return the workloads of a jobs table that are drawn.

    Args:
        jobs: a jobs table (`windtunnel.schema`).
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    mix = [row for row in workload_mix(jobs).to_pylist() if row["listed"]]
    rare = [row for row in mix if _is_rare(row)]
    kept = [row for row in mix if row not in rare]
    shown, pooled = (kept, []) if len(kept) <= MOST else (kept[: MOST - 1], kept[MOST - 1 :])
    # A kind of that name is not the jobs without a kind.
    harmless = labels([NONE, *(row["workload"] for row in shown)])[1:]
    names = {row["workload"]: name for row, name in zip(shown, harmless, strict=True)}
    others = f"{len(pooled)} other kinds"
    names |= {row["workload"]: others for row in pooled}
    encoded = pc.dictionary_encode(jobs["workload"]).combine_chunks()
    words = pa.array([names.get(word) for word in encoded.dictionary.to_pylist()], pa.string())
    replaced = words.take(encoded.indices)
    at = jobs.column_names.index("workload")
    jobs_of = {names[row["workload"]]: row["num_jobs"] for row in shown}
    if pooled:
        jobs_of[others] = sum(row["num_jobs"] for row in pooled)
    notes = [
        f"the {count(row['num_jobs'])} jobs of workload {name} are not drawn: fewer than "
        f"{FEW_JOBS:g} % of the GPU jobs, less than {FEW_GPU_TIME:g} % of the GPU time."
        for row, name in zip(rare, labels(r["workload"] for r in rare), strict=True)
    ]
    if pooled:
        notes.append(f"the {len(pooled)} smaller of {len(kept)} workloads are drawn as one.")
    return Chosen(jobs.set_column(at, "workload", replaced), jobs_of, tuple(notes))


def _is_rare(row: dict[str, Any]) -> bool:
    of_time = row["gpu_time_percent"]
    return bool(row["job_percent"] is None or row["job_percent"] < FEW_JOBS) and (
        of_time is None or of_time < FEW_GPU_TIME
    )
