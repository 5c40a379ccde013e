"""`generate`: a synthetic trace that meets a cluster's published statistics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windtunnel.cluster import preset
from windtunnel.errors import SpecError
from windtunnel.traces.resuming import BY_GPUS, by_gpus
from windtunnel.traces.synthetic.by_request import jobs_by_request, request_notes
from windtunnel.traces.synthetic.by_size import (
    jobs_by_size,
    jobs_of_parts,
    joined_notes,
    size_notes,
)
from windtunnel.traces.synthetic.by_workload import jobs_by_workload, workload_notes
from windtunnel.traces.synthetic.draw_request import checked_request
from windtunnel.traces.synthetic.published import published
from windtunnel.traces.synthetic.request_facts import RequestFacts
from windtunnel.traces.synthetic.size_facts import JoinedFacts, SizeFacts
from windtunnel.traces.synthetic.task_use import tasks_of
from windtunnel.traces.synthetic.workload_facts import WorkloadFacts
from windtunnel.traces.trace import Trace, TraceMetadata

if TYPE_CHECKING:
    import pyarrow as pa

    from windtunnel.traces.synthetic.draw_request import DrawRequest
    from windtunnel.traces.synthetic.published import Published


def generate(
    name: str,
    *,
    jobs: int | None = None,
    load: float | None = None,
    seed: int = 0,
    cpu_jobs: bool = False,
    tasks: bool = False,
) -> Trace:
    """Return a synthetic trace that meets the published statistics of a cluster.

    With the real number of jobs every published knot of run time and wait is met to the job, for
    any seed; GPU time by type, size and final state is met to the published digits wherever whole
    seconds allow. With another number of jobs all counts are scaled by largest remainders. What
    is exact, fitted and modelled in a trace is in its notes.

    Args:
        name: one of `NAMES`.
        jobs: GPU jobs; default as many as the real trace has.
        load: wanted GPU time over (span x the cluster's GPUs). The span is stretched to it.
            Default: the real span, scaled with the number of jobs.
        seed: same seed, same bytes; >= 0.
        cpu_jobs: add the jobs that ask for no GPU, in the real proportion.
        tasks: add the table of the jobs' tasks with what they used (PAI only; 7.4 million rows at
            the real size with CPU jobs).

    Raises:
        SpecError: an unknown name, ``jobs < 1``, ``load <= 0`` or not finite, ``seed < 0``;
            ``tasks`` where nothing is known of them.
    """
    facts = published(name)
    key = str(name).lower()
    request = checked_request(jobs, load, seed, cpu_jobs=cpu_jobs, real=facts.trace.gpu_jobs)
    if tasks and not isinstance(facts, RequestFacts):
        raise SpecError("tasks", f"only synthetic:pai has tasks, synthetic:{key} has none.")
    table, notes = _made(key, facts, request)
    if facts.trace.restore_time is not None:
        needed = by_gpus(table["num_gpus"], BY_GPUS[facts.trace.restore_time])
        table = table.append_column("restore_time", needed)
    settings = {"jobs": request.jobs, "load": load, "seed": request.seed, "cpu_jobs": cpu_jobs}
    metadata = TraceMetadata(
        name=f"synthetic:{key}",
        source=f"windtunnel.traces.synthetic, from {facts.trace.source}",
        licence=facts.trace.licence,
        epoch=facts.trace.epoch,
        zone=facts.trace.zone,
        rows_read=table.num_rows,
        notes=notes,
        settings=settings | {"tasks": True} if tasks else settings,
    )
    return Trace(
        jobs=table,
        metadata=metadata,
        cluster=preset(facts.trace.cluster),
        tasks=tasks_of(table, facts.use, request)
        if tasks and isinstance(facts, RequestFacts)
        else None,
    )


def _made(name: str, facts: Published, request: DrawRequest) -> tuple[pa.Table, tuple[str, ...]]:
    """Return a trace's jobs and notes."""
    if isinstance(facts, WorkloadFacts):
        return jobs_by_workload(name, facts, request), workload_notes(facts, request.jobs)
    if isinstance(facts, SizeFacts):
        return jobs_by_size(name, facts, request), size_notes(facts, request)
    if isinstance(facts, JoinedFacts):
        parts = {part: published(part) for part in facts.parts}
        sized = {part: f for part, f in parts.items() if isinstance(f, SizeFacts)}
        return jobs_of_parts(name, sized, facts, request), joined_notes(sized, facts, request)
    return jobs_by_request(name, facts, request), request_notes(facts, request)
