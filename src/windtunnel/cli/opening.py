"""From what the user typed to a trace, a cluster and the settings of a flight, checked in order.

Everything that can be refused without reading the trace is refused before it is read.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windtunnel.cli.options import READING
from windtunnel.cli.screen import progress, shows_progress
from windtunnel.errors import SchemaError, SpecError, Violation, quote

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from windtunnel.cluster.spec import ClusterSpec
    from windtunnel.traces.trace import Trace


@dataclass(frozen=True)
class TraceRequest:
    """A trace as the user asked for it.

    Attributes:
        spec: its name with what stands behind it (`windtunnel.traces.trace_name`), path or ``-``.
        reader: ``--format``; None = found out.
        zone: ``--zone``.
        bad_rows: ``--bad-rows``.
        seed: of a trace that is made and whose name says none; None = the generator's own.
    """

    spec: str
    reader: str | None = None
    zone: str | None = None
    bad_rows: str | None = None
    seed: int | None = None

    @classmethod
    def of(cls, spec: str, asked: dict[str, Any], seed: int | None = None) -> TraceRequest:
        """Return the request that a command's options make; takes the trace's out of them.

        Args:
            spec: TRACE as typed.
            asked: the command's options, with those of `windtunnel.cli.options.reading_options`.
            seed: the command's.
        """
        read = {name: asked.pop(name) for name in READING if name in asked}
        return cls(spec, seed=seed, **read)

    @property
    def is_synthetic(self) -> bool:
        """Whether the trace is made here, from published statistics or from a twin's."""
        from windtunnel.traces.trace_name import TraceName

        return TraceName.parse(self.spec).is_made or self.reader == "twin"

    def options(self) -> dict[str, Any]:
        """Return the options that `windtunnel.open_trace` is to get.

        Raises:
            SpecError: an option of traces that are read is given for one that is made.
        """
        from windtunnel.traces.trace_name import TraceName

        read = {"zone": self.zone, "bad_rows": self.bad_rows}
        given = {name: value for name, value in read.items() if value is not None}
        for name in given if self.is_synthetic else ():
            option = f"--{name.replace('_', '-')}"
            message = f"only traces that are read take it; {quote(self.spec)} is made."
            raise SpecError(option, message)
        named = TraceName.parse(self.spec)
        is_drawn = self.is_synthetic or named.is_drawn
        has_own = self.seed is None or named.says_seed or not is_drawn
        return given if has_own else {**given, "seed": self.seed}


def open_request(request: TraceRequest) -> Trace:
    """Open a trace, downloading it first where it is published and not here.

    Raises:
        WindtunnelError: it cannot be opened, or its numbers are out of all proportion.
    """
    options = request.options()
    from windtunnel.traces import registry
    from windtunnel.traces.open import open_trace
    from windtunnel.traces.registry import PUBLISHED
    from windtunnel.traces.trace_name import TraceName

    name = TraceName.parse(request.spec).base.lower().removesuffix(":default")
    if request.reader is None and name in PUBLISHED and registry.locate(name) is None:
        registry.fetch(name, progress=shows_progress())  # with a bar of its own
    source = "standard input" if request.spec == "-" else request.spec
    with progress(f"Reading {source}"):
        trace = open_trace(request.spec, format=request.reader, **options)
    refuse_out_of_proportion(trace.jobs)
    return trace


def cluster_for(trace: Trace, chosen: ClusterSpec | None) -> tuple[ClusterSpec, tuple[str, ...]]:
    """Return the cluster to fly on, and what to tell about the choice.

    Args:
        trace: the trace, which may know its own cluster.
        chosen: the user's; None = not given.

    Raises:
        SpecError: neither the user nor the trace names one.
    """
    from windtunnel.cluster.presets import SITES

    if chosen is not None:
        return chosen, ()
    if trace.cluster is not None:
        return trace.cluster, (
            "No --cluster was given: the jobs fly on the cluster that comes with the trace.",
        )
    raise SpecError(
        "--cluster",
        f"the trace {quote(trace.name)} does not say on what cluster it ran; give one: "
        f"--cluster 64x8:A100 (nodes x GPUs : type), pool:512, FILE.toml or one of "
        f"{', '.join(sorted(SITES))}.",
    )


def check_out(
    out: Path | None, endings: tuple[str, ...], trace: str, option: str = "--out"
) -> None:
    """Check that a result can be written, before the run.

    Args:
        out: the file; None = nothing is to be written.
        endings: what its name may end in.
        trace: what is read, which must not be overwritten.
        option: what names the file.

    Raises:
        SpecError: another ending, no such folder, no permission, or the trace itself.
    """
    if out is None:
        return
    where = f"{option} {out}"
    if not out.name.lower().endswith(endings):
        raise SpecError(
            where, f"found the ending {quote(out.suffix)}; expected {' or '.join(endings)}."
        )
    folder = out.parent
    if not folder.is_dir():
        raise SpecError(where, f"expected a folder that exists; {quote(str(folder))} is none.")
    if out.is_dir():
        raise SpecError(where, "expected a file; it is a folder.")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise SpecError(where, f"expected a folder that can be written to; {folder} cannot.")
    from windtunnel.traces.trace_name import TraceName

    read = TraceName.parse(trace).base
    if out.exists() and Path(read).exists() and out.samefile(read):
        raise SpecError(where, "is the trace itself; expected another file.")


def check_apart(files: dict[str, Any]) -> None:
    """Check that no two options write one file.

    Args:
        files: option -> its file; None = nothing is to be written.

    Raises:
        SpecError: two of them do.
    """
    known: dict[str, str] = {}
    for option, path in files.items():
        if path and (other := known.setdefault(os.path.realpath(path), option)) != option:
            raise SpecError(f"{option} {path}", f"is what {other} writes; expected another file.")


#: 31,700 years: who has longer times has milliseconds or less.
MAX_SECONDS = 1e12
#: GPUs or cores of a job.
MAX_COUNT = 2**31 - 1
#: GPU- or core-seconds of all jobs: up to here float64 counts single ones.
MAX_WORK = 2**53
_TIMES = ("submit_time", "start_time", "end_time", "duration", "estimate")
_SOURCES = ("source_duration", "source_queue")


def refuse_out_of_proportion(jobs: pa.Table) -> None:
    """Check that times, counts and sums of a jobs table are such as clusters have.

    Args:
        jobs: a jobs table (`windtunnel.schema`).

    Raises:
        SchemaError: some are not; lists all of them, each with its first job.
    """
    import numpy as np

    from windtunnel.schema import source_of

    found = []

    def check(name: str, values: np.ndarray, largest: float, what: str) -> None:
        far = np.isfinite(values) & (np.abs(values) > largest)
        if far.any():
            row = int(far.argmax())
            rule = f"at most {largest:,.0f} {what}; job {quote(jobs['job_id'][row].as_py())} has "
            rule += f"{values[row]:g}"
            found.append(Violation(name, rule, int(far.sum())))

    for name in (*_TIMES, *_SOURCES):
        check(name, _floats(jobs, name), MAX_SECONDS, "s (milliseconds are no seconds)")
    for name in ("num_gpus", "num_cpus"):
        check(name, _floats(jobs, name), MAX_COUNT, "of them")
    for name, length in (
        ("num_gpus", "duration"),
        ("num_gpus", "source_duration"),
        ("num_cpus", "duration"),
    ):
        with np.errstate(over="ignore"):
            work = np.abs(_floats(jobs, name) * _floats(jobs, length))
        if not found and np.nansum(work[np.isfinite(work)]) > MAX_WORK:
            row = int(np.nanargmax(work))
            rule = f"that times {length} all jobs together have at most {MAX_WORK:,} s of them; "
            rule += f"job {quote(jobs['job_id'][row].as_py())} alone has {work[row]:g}"
            found.append(Violation(name, rule))
    if found:
        raise SchemaError(source_of(jobs), found)


def _floats(jobs: pa.Table, name: str) -> np.ndarray:
    """Return a column of numbers as float64, NaN = unknown; all NaN where there is no such."""
    import numpy as np
    import pyarrow as pa

    if name not in jobs.column_names:
        return np.full(jobs.num_rows, np.nan)
    kind = jobs.schema.field(name).type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return np.full(jobs.num_rows, np.nan)
    values = jobs[name].cast(pa.float64(), safe=False)
    return np.asarray(values.to_numpy(), dtype=np.float64)
