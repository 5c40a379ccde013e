"""Write a jobs table as ``sacct -P`` prints it; `windtunnel.traces.sacct` reads it back.

Times are seconds since 1970 (``SLURM_TIME_FORMAT=%s``), so that no time zone can bend them. sacct
quotes nothing: a separator in a job's name stays there, and every reader has to join the name
again; Slurm allows none in other names, so there it becomes ``_``. What a terminal would obey is
escaped, and a name that a spreadsheet would run as a formula gets an apostrophe.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.compute as pc

from windtunnel.site.slurm_words import checked, licenses
from windtunnel.traces.job_trace import counted
from windtunnel.traces.layout import SLURM_STATES
from windtunnel.traces.outgoing import Outgoing, is_fraction
from windtunnel.traces.sacct_words import NOTHING, STATES, state_word
from windtunnel.traces.source import escaped
from windtunnel.traces.target import write_lines
from windtunnel.traces.writers import writer

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pyarrow as pa

    from windtunnel.traces.trace import Trace, TraceMetadata

#: The columns, in the order in which sacct is asked for them; Priority where jobs have one.
FIELDS: tuple[str, ...] = (
    *("JobID", "JobIDRaw", "JobName", "User", "Account", "Partition", "QOS", "State", "ExitCode"),
    *("Submit", "Eligible", "Start", "End", "Elapsed", "ElapsedRaw", "Timelimit", "NNodes"),
    *("NCPUS", "ReqTRES", "AllocTRES", "NodeList", "Reason", "TRESUsageInTot"),
)
_WORDS = {ours: word for word, ours in SLURM_STATES.items()}
_UNKNOWN = "Unknown"
_ID = re.compile(r"([0-9]{1,18}(?:_[0-9]{1,18})?(?:\+[0-9]{1,9})?)(?:#[0-9]+)?", re.ASCII)
_FORMULA = re.compile(r"(^|\|)(\s*[=+\-@])")
_LATEST = 7_258_118_400
#: What Slurm's own numbers, and so a reader of its logs, can hold.
_MAX_COUNT, _MAX_GIB, _MAX_PRIORITY, _MAX_SPAN = 10**9, 10**11, 10**12 - 1, 10**6 * 86_400 - 1
_CARRIED = {
    *("job_id", "submit_time", "start_time", "end_time", "duration", "estimate", "num_gpus"),
    *("num_cpus", "mem_gib", "gpu_type", "user", "vc", "template", "status", "priority"),
    *("partition", "qos", "eligible_time", "nodelist", "reason", "num_nodes", "state"),
    *("job_id_raw", "licenses"),
}


def write_sacct(jobs: Any, path: str | Path, *, metadata: TraceMetadata | None = None) -> None:
    """Write a jobs table as an sacct log, gzipped where the name ends in ``.gz``.

    Rows are written in order of submission. Ids that Slurm could have given are kept, otherwise
    all jobs are numbered from 1. Times are rounded to whole seconds; without an epoch they count
    from 1970. The same table gives the same bytes. What is lost: `sacct_losses`.

    Args:
        jobs: anything `windtunnel.schema.as_jobs` takes; `windtunnel.traces.sacct`'s further
            columns are written where it has them.
        metadata: gives the epoch.

    Raises:
        SchemaError: the table breaks the schema, has a fraction of a GPU, a time that lies before
            1970 or after 2200, or a number that is too large for a log.
        TraceError: the file cannot be written.
    """
    given = _outgoing(jobs)
    given.check_plain()
    epoch = (metadata.zero if metadata is not None else None) or 0.0
    _refuse(given, epoch)
    columns = _columns(given.in_order(), epoch)
    rows = zip(*columns.values(), strict=True)
    write_lines(path, ["|".join(columns), *("|".join(row) for row in rows)])


def _outgoing(jobs: Any) -> Outgoing:
    return Outgoing(jobs, "an sacct log", _CARRIED)


def sacct_losses(jobs: pa.Table) -> tuple[str, ...]:
    """Return what of a jobs table an sacct log cannot hold, one sentence each."""
    given = _outgoing(jobs)
    losses = given.lost_columns()
    if not _are_ids(given.cells("job_id")):
        losses.append("The job ids are none that Slurm gives: jobs are numbered from 1.")
    start, duration, end = map(given.floats, ("start_time", "duration", "end_time"))
    times = (given.floats("submit_time"), start, duration, given.floats("estimate"))
    priority, gpus, status = given.floats("priority"), given.floats("num_gpus"), given.status
    expected_end, run = start + duration, np.rint(duration)
    stays = np.isin(status, ("running", "pending"))
    kinds, names = given.cells("gpu_type"), given.cells("template")
    typed = np.array([kind is not None for kind in kinds], dtype=bool)
    several, split = (np.array(["|" in (c or "") for c in cells], bool) for cells in (kinds, names))
    changes = (
        (
            np.any([is_fraction(time) for time in times], axis=0),
            "whose times have fractions of a second, which are rounded",
        ),
        (is_fraction(given.floats("num_cpus")), "with a fraction of a core, which is rounded up"),
        (several, "that may run on several GPU types, which are not written"),
        (~_fits(priority) & ~np.isnan(priority), "whose priority is no whole number from 0 on"),
        (
            (status == "cancelled") & (run == 0) & ~np.isnan(start),
            "cancelled within their first second, which read as never started",
        ),
        (np.isnan(gpus), "whose GPUs are unknown, which read as none"),
        (typed & ~(gpus > 0), "without GPUs, whose GPU type is not written"),
        (status == "", "without a status, which read as unknown"),
        (
            (status == "pending") & ~(run > 0) & ~np.isnan(start),
            "that wait and have a start, which is not written",
        ),
        (stays & ~np.isnan(end), "that still run or wait and have an end, which is not written"),
        (
            ~stays & np.isnan(end) & ~np.isnan(expected_end),
            "without an end: it reads as start + run",
        ),
        (
            np.isnan(duration) & ~np.isnan(end - start),
            "without a run time: it reads as end - start",
        ),
        (  # only a known state shows where such a name ends
            split & ~np.isin(status, list(_WORDS)),
            "of unknown status with a separator in their names, which becomes _",
        ),
        (
            ~stays & (np.abs(end - expected_end) > 1),
            "whose end is not start + run time, as which it reads",
        ),
    )
    changed = sum(_changed(jobs, name) for name in ("user", "vc", "template", "partition", "qos"))
    names_lost = (
        "Names with separators, control characters, a formula's first character or a word that "
        "Slurm has for nothing, which read back otherwise"
    )
    masks = ((mask, f"Jobs {words}") for mask, words in changes)
    return (*losses, *counted([*masks, (changed, names_lost)]))


def _refuse(given: Outgoing, epoch: float) -> None:
    """Refuse what sacct cannot print.

    Raises:
        SchemaError: lists everything at once.
    """
    limits = {"num_gpus": _MAX_COUNT, "num_cpus": _MAX_COUNT, "mem_gib": _MAX_GIB}
    limits |= {"duration": _MAX_SPAN, "estimate": _MAX_SPAN}
    moments = ("submit_time", "start_time", "end_time", "eligible_time")
    whole = "a whole number: Slurm counts whole GPUs"
    given.refuse(
        [
            ("num_gpus", whole, is_fraction(given.floats("num_gpus"))),
            *((n, f"at most {most:,}", given.floats(n) > most) for n, most in limits.items()),
            ("num_nodes", f"0 to {_MAX_COUNT:,}", _outside(given.floats("num_nodes"), _MAX_COUNT)),
            *(
                (n, "a time between 1970 and 2200", _outside(given.floats(n) + epoch, _LATEST))
                for n in moments
            ),
        ]
    )


def _outside(values: np.ndarray, most: float) -> np.ndarray:
    outside: np.ndarray = (values < 0) | (values > most)
    return outside


def _columns(given: Outgoing, epoch: float) -> dict[str, list[str]]:
    """Return the log's columns, name -> cells."""
    rows = len(given)
    ids = given.cells("job_id")
    kept = _are_ids(ids)
    job_ids = [_ID.fullmatch(i)[1] for i in ids] if kept else [str(n + 1) for n in range(rows)]  # type: ignore[index]
    start, duration = given.floats("start_time"), given.floats("duration")
    began = np.rint(start + epoch)
    elapsed = np.rint(duration)
    status = given.cells("status")
    states = _states(given, status)
    open_ended = np.array([word in ("running", "pending") for word in status], dtype=bool)
    recorded_end = np.rint(given.floats("end_time") + epoch)
    end = np.where(np.isnan(began + elapsed), recorded_end, began + elapsed)
    end[open_ended] = np.nan
    requested = _tres(given)
    ran = (~np.isnan(start)).tolist()
    columns = {
        "JobID": job_ids,
        "JobIDRaw": _raw_ids(given, job_ids) if kept else job_ids,
        "JobName": [
            name if state_word(state) in STATES else name.replace("|", "_")
            for name, state in zip(
                _names(given, "template", keep_separators=True), states, strict=True
            )
        ],
        "User": _names(given, "user"),
        "Account": _names(given, "vc"),
        "Partition": _names(given, "partition"),
        "QOS": _names(given, "qos"),
        "State": states,
        "ExitCode": ["1:0" if word == "failed" else "0:0" for word in status],
        "Submit": _moments(given.floats("submit_time") + epoch),
        "Eligible": _moments(given.floats("eligible_time") + epoch),
        "Start": _moments(began),
        "End": _moments(end),
        "Elapsed": [_span(seconds) for seconds in elapsed.tolist()],
        "ElapsedRaw": _whole(elapsed),
        "Timelimit": [_span(seconds) for seconds in np.rint(given.floats("estimate")).tolist()],
        "NNodes": _whole(given.floats("num_nodes")),
        "NCPUS": _whole(np.ceil(given.floats("num_cpus"))),
        "ReqTRES": requested,
        "AllocTRES": [cell if has else "" for cell, has in zip(requested, ran, strict=True)],
        "NodeList": _names(given, "nodelist", nothing="None assigned"),
        "Reason": _names(given, "reason", nothing="None"),
        "TRESUsageInTot": [""] * rows,
    }
    priority = given.floats("priority")
    if _fits(priority).any():
        columns["Priority"] = _whole(np.where(_fits(priority), priority, np.nan))
    return columns


def _fits(priority: np.ndarray) -> np.ndarray:
    """Return which priorities Slurm could have given."""
    fits: np.ndarray = (priority >= 0) & (priority <= _MAX_PRIORITY) & ~is_fraction(priority)
    return fits


def _raw_ids(given: Outgoing, job_ids: Sequence[str]) -> list[str]:
    """Return the ids under which Slurm ran the jobs: as recorded, else their first numbers."""
    recorded = _names(given, "job_id_raw")
    return [own or re.split(r"[_+]", name)[0] for own, name in zip(recorded, job_ids, strict=True)]


def _are_ids(ids: Sequence[str]) -> bool:
    """Return whether Slurm could have given all these ids."""
    return all(_ID.fullmatch(name) for name in ids)


def _states(given: Outgoing, status: Sequence[str | None]) -> list[str]:
    """Return Slurm's words: the log's own where it came from one, else by status."""
    recorded = _names(given, "state")
    return [
        own if own and STATES.get(state_word(own)) == word else _WORDS.get(word or "", "UNKNOWN")
        for own, word in zip(recorded, status, strict=True)
    ]


def _tres(given: Outgoing) -> list[str]:
    """Return each job's resources as ``cpu=8,mem=64G,node=1,gres/gpu=8,gres/gpu:a100=8``."""
    cpus = _whole(np.ceil(given.floats("num_cpus")))
    nodes = _whole(given.floats("num_nodes"))
    gpus = _whole(given.floats("num_gpus"))
    memory = [_memory(gib) for gib in given.floats("mem_gib").tolist()]
    kinds = [
        "" if cell is None or "|" in cell else re.sub(r"[\s,=:|]", "_", escaped(cell))
        for cell in given.cells("gpu_type")
    ]
    held = [_licenses(cell) for cell in given.cells("licenses")]
    cells = []
    each = zip(cpus, memory, nodes, gpus, kinds, held, strict=True)
    for cpu, mem, node, gpu, kind, more in each:
        parts = [f"cpu={cpu}"] if cpu else []
        parts += [f"mem={mem}"] if mem else []
        parts += [f"node={node}"] if node else []
        # A log that names no GPUs says that there are none.
        parts += [f"gres/gpu={gpu}"] if gpu else []
        parts += [f"gres/gpu:{kind}={gpu}"] if gpu not in ("", "0") and kind else []
        parts += more
        cells.append(",".join(parts))
    return cells


def _licenses(cell: object) -> list[str]:
    """Return a job's licences as ``license/matlab=2``; none where they are not written so."""
    try:
        counts = checked(licenses(str(cell or "")))
    except ValueError:
        return []
    plain = {re.sub(r"[^\w@.-]", "_", name): count for name, count in counts.items()}
    return [f"license/{name}={count}" for name, count in plain.items()]


def _memory(gib: float) -> str:
    if np.isnan(gib):
        return ""
    if gib.is_integer():
        return f"{int(gib)}G"
    return f"{gib * 1024:.9f}".rstrip("0").rstrip(".") + "M"


def _names(
    given: Outgoing, name: str, *, keep_separators: bool = False, nothing: str = ""
) -> list[str]:
    """Return a column of names as cells, harmless."""
    cells = given.cells(name)
    known = {c: _cell(str(c), keep_separators=keep_separators) for c in set(cells) - {None}}
    return [nothing if cell is None else known[cell] for cell in cells]


def _cell(text: str, *, keep_separators: bool) -> str:
    r"""Return a name as a cell.

    >>> _cell("a|=b\n", keep_separators=True), _cell("a|b", keep_separators=False)
    ("a|'=b\\n", 'a_b')
    """
    plain = escaped(text) if keep_separators else escaped(text).replace("|", "_")
    return _FORMULA.sub(r"\1'\2", plain)


def _changed(jobs: pa.Table, name: str) -> int:
    """Return how many rows' names read back as another, or as none."""
    if name not in jobs.column_names:
        return 0
    is_name = name == "template"
    counts = pc.value_counts(jobs[name].drop_null().cast("string")).to_pylist()
    changed = 0
    for row in counts:
        cell = _cell(row["values"], keep_separators=is_name).strip()
        nothing = not cell if is_name else cell.lower() in NOTHING
        changed += row["counts"] * (nothing or cell != row["values"])
    return changed


def _whole(values: np.ndarray) -> list[str]:
    """Return whole numbers as text, NaN as nothing."""
    return ["" if np.isnan(number) else f"{number + 0.0:.0f}" for number in values.tolist()]


def _moments(seconds: np.ndarray) -> list[str]:
    """Return instants as whole seconds since 1970, NaN as Unknown."""
    return [_UNKNOWN if np.isnan(number) else f"{round(number)}" for number in seconds.tolist()]


def _span(seconds: float) -> str:
    """Return a time span as ``[D-]HH:MM:SS``, NaN as nothing.

    >>> _span(93780.0), _span(123.0)
    ('1-02:03:00', '00:02:03')
    """
    if np.isnan(seconds):
        return ""
    days, rest = divmod(round(seconds), 86400)
    clock = f"{rest // 3600:02d}:{rest // 60 % 60:02d}:{rest % 60:02d}"
    return f"{days}-{clock}" if days else clock


@writer("sacct", (".sacct",))
def _sacct(trace: Trace, path: Path) -> tuple[str, ...]:
    write_sacct(trace.jobs, path, metadata=trace.metadata)
    return sacct_losses(trace.jobs)
