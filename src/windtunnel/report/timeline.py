"""A run as a Chrome trace, which Perfetto shows: nodes are processes, GPUs are threads.

A job's stay is a slice on every GPU that it holds (`windtunnel.report.threads`); a wait is an
asynchronous span; a job that is taken off its GPUs is an instant there; free GPUs, utilisation and
the queue are counters of process 0. Times are microseconds since the trace's epoch. (Trace Event
Format, Google; the JSON object form.)
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel import storage
from windtunnel.errors import SpecError
from windtunnel.report.arrows import flow_events
from windtunnel.report.format import count, duration, plural
from windtunnel.report.names import MAX_TEXT, clean
from windtunnel.report.stays import cut_short, stay_times, waits
from windtunnel.report.threads import Slices, num_threads, slices, thread_name
from windtunnel.sim.metrics import horizon
from windtunnel.sim.observe.holdings import has_nodes
from windtunnel.sim.timeline import resample

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from windtunnel.sim.outcome import Outcome

#: Events that viewers open with ease.
MAX_EVENTS = 1_000_000
#: Points of one counter; longer curves are drawn as exact means of so many equal spans.
MAX_POINTS = 20_000
#: Nodes and GPUs are all named, idle ones too, where that takes no larger part of the events.
_NAMES_SHARE = 0.1
#: Endings of files that `write_timeline` writes.
ENDINGS: tuple[str, ...] = (".json", ".json.gz")
_US = 1e6
_ARGS = ("user", "vc", "workload")


@dataclass(frozen=True)
class Timeline:
    """What of a run is written.

    Attributes:
        outcome: the run.
        window: from when until when, s; what lies across an edge is cut there.
        stride: every so many-th job of the table; 1 = all.
        epoch: UTC instant of time 0 (ISO 8601), "" = unknown.
        notes: what a reader must know, one sentence each.
    """

    outcome: Outcome
    window: tuple[float, float]
    stride: int = 1
    epoch: str = ""
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the trace as plain data."""
        data: dict[str, Any] = json.loads(b"".join(self.chunks()))
        return data

    def chunks(self) -> Iterator[bytes]:
        """Yield the JSON text, piece by piece."""
        import windtunnel

        about = {
            "generator": f"windtunnel {windtunnel.__version__}",
            **({"time_origin": self.epoch} if self.epoch else {}),
            **{f"note {at}": clean(note, MAX_TEXT) for at, note in enumerate(self.notes, 1)},
        }
        yield b'{"displayTimeUnit":"ms","otherData":' + _json(about) + b',"traceEvents":[\n'
        before = b""
        stops = (self._stops(), self._arrows())
        for part in (self._names(), self._slices(), *stops, self._waits(), self._counters()):
            for event in part:
                yield before + event
                before = b",\n"
        yield b"\n]}\n"

    @cached_property
    def _chosen(self) -> np.ndarray:
        """Rows of the segments that are drawn, ascending."""
        start, end = stay_times(self.outcome)
        return np.flatnonzero(self._shows(start, end, self.outcome.flight.segment_job))

    def _shows(self, start: np.ndarray, end: np.ndarray, row: np.ndarray) -> np.ndarray:
        first, last = self.window
        inside = (start < last) & ((end > first) | (start >= first))
        shown: np.ndarray = inside & (row % self.stride == 0)
        return shown

    @cached_property
    def _drawn(self) -> Slices:
        return slices(self.outcome, self._chosen)

    @cached_property
    def _jobs(self) -> dict[int, dict[str, Any]]:
        """Row of each job that appears -> what is shown of it, harmless texts all of them."""
        outcome = self.outcome
        rows = np.union1d(outcome.flight.segment_job[self._chosen], self._waiting[0])
        texts = {name: outcome.jobs[name].take(rows).to_pylist() for name in ("job_id", *_ARGS)}
        facts: dict[int, dict[str, Any]] = {}
        for at, row in enumerate(rows.tolist()):
            words = {name: column[at] for name, column in texts.items()}
            facts[row] = {
                **{name: clean(word, MAX_TEXT) for name, word in words.items() if word is not None},
                "gpus": _number(outcome.num_gpus[row]),
                "submit_s": float(outcome.submit_time[row]),
            }
        return facts

    def _names(self) -> Iterator[bytes]:
        """Yield the names of processes and threads, in the order in which to show them."""
        yield from _named("process", "cluster", 0, pid=0)
        drawn = self._drawn
        columns = (drawn.process, drawn.column, drawn.lane, drawn.thread)
        used = set(zip(*(values.tolist() for values in columns), strict=True))
        nodes = {process for process, *_ in used}
        cluster = self.outcome.cluster
        idle_too = cluster.num_gpus + cluster.num_nodes <= _NAMES_SHARE * MAX_EVENTS
        if has_nodes(self.outcome) and idle_too:
            nodes |= set(range(cluster.num_nodes))
            if self.outcome.settings.get("sharing") != "pooled":
                sizes = [kind.gpus for kind in cluster.node_types for _ in range(kind.count)]
                used |= {(n, gpu, 0, gpu) for n, size in enumerate(sizes) for gpu in range(size)}
        for node in sorted(nodes):
            yield from _named("process", self._node(node), node + 1, pid=node + 1)
        place = dict.fromkeys(nodes, 0)
        for node, column, lane, thread in sorted(used):
            name = thread_name(column, lane)
            yield from _named("thread", name, place[node], pid=node + 1, tid=thread)
            place[node] += 1

    def _node(self, node: int) -> str:
        cluster = self.outcome.cluster
        if not has_nodes(self.outcome):
            return "jobs, without nodes"
        if node == cluster.num_nodes:
            return "jobs on no node"
        first = 0
        for kind in cluster.node_types:
            if node < first + kind.count:
                break
            first += kind.count
        what = f"{kind.gpus} {clean(kind.gpu_type)}" if kind.gpu_type else plural(kind.gpus, "GPU")
        return f"node {node} ({what})"

    def _slices(self) -> Iterator[bytes]:
        outcome, drawn = self.outcome, self._drawn
        start, end = stay_times(outcome)
        begins, ends = (_us(np.clip(times, *self.window)).tolist() for times in (start, end))
        cut = (start < self.window[0]) | (end > self.window[1])
        rows = outcome.flight.segment_job.tolist()
        columns = (drawn.stay, drawn.process + 1, drawn.thread)
        last, text = -1, b""
        for stay, pid, tid in zip(*(values.tolist() for values in columns), strict=True):
            if stay != last:  # the slices of a stay follow each other
                args = self._jobs[rows[stay]]
                if cut[stay]:
                    args = {**args, "start_s": float(start[stay]), "end_s": float(end[stay])}
                last, text = stay, _slice_body(args, begins[stay], ends[stay])
            yield b'{"ph":"X","pid":%d,"tid":%d,%b' % (pid, tid, text)

    def _stops(self) -> Iterator[bytes]:
        """Yield an instant on its first thread for every job taken off its GPUs."""
        stays, when = cut_short(self.outcome)
        first, last = self.window
        seen = (when >= first) & (when < last)
        at = dict(zip(stays[seen].tolist(), _us(when[seen]).tolist(), strict=True))
        drawn, (stay, where) = self._drawn, self._first_slices
        verb = "preempt" if self.outcome.flight.interruptions is None else "stop"
        tid = drawn.thread
        rows = self.outcome.flight.segment_job
        outages = self._outages
        for one, index in zip(stay.tolist(), where.tolist(), strict=True):
            if one in at:
                outage = outages.get((int(rows[one]), at[one]))
                yield _event(
                    **({} if outage is None else {"args": outage}),
                    ph="i",
                    pid=int(drawn.process[index]) + 1,
                    tid=int(tid[index]),
                    name=f"{verb} {_job_name(self._jobs[int(rows[one])])}",
                    cat="preemption" if verb == "preempt" else "interruption",
                    ts=at[one],
                    s="t",
                )

    @cached_property
    def _first_slices(self) -> tuple[np.ndarray, np.ndarray]:
        """The stays that are drawn, and where the first slice of each stands."""
        stay, where = np.unique(self._drawn.stay, return_index=True)
        return stay, where

    def _arrows(self) -> Iterator[bytes]:
        """Yield who was stopped for whom, and whom jobs waited behind, where that was recorded."""
        stay, where = self._first_slices
        pids, tids = self._drawn.process[where] + 1, self._drawn.thread[where]
        threads = dict(
            zip(stay.tolist(), zip(pids.tolist(), tids.tolist(), strict=True), strict=True)
        )
        return flow_events(self.outcome.flight, threads, self.window)

    @cached_property
    def _outages(self) -> dict[tuple[int, int], dict[str, Any]]:
        """(Row, us) of each stop by an outage or a failure -> its cause, and s of work undone."""
        found = self.outcome.flight.interruptions
        if found is None:
            return {}
        times, lost = _us(found.stop_time).tolist(), found.stop_lost.tolist()
        causes = found.causes[found.stop_cause].tolist()
        keys = zip(found.stop_row.tolist(), times, strict=True)
        facts = ({"cause": cause, "lost_s": s} for cause, s in zip(causes, lost, strict=True))
        return dict(zip(keys, facts, strict=True))

    @cached_property
    def _waiting(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Row, begin and end (s) of each wait that is drawn."""
        row, start, end = waits(self.outcome)
        shown = self._shows(start, end, row)
        return row[shown], start[shown], end[shown]

    def _waits(self) -> Iterator[bytes]:
        row, start, end = self._waiting
        begin, stop = (_us(np.clip(times, *self.window)).tolist() for times in (start, end))
        for job, first, last in zip(row.tolist(), begin, stop, strict=True):
            ident = _json(self._jobs[job]["job_id"])
            for phase, at in ((b"b", first), (b"e", last)):
                yield (
                    b'{"ph":"%b","cat":"queue","id":%b,"pid":0,"tid":0,"name":"waiting","ts":%d}'
                    % (phase, ident, at)
                )

    def _counters(self) -> Iterator[bytes]:
        use, queue = self.outcome.utilization(), self.outcome.queue()
        gpus = use["gpus"].to_numpy()
        curves = (
            ("free_gpus", "free", use["time"], self.outcome.cluster.num_gpus - gpus),
            ("utilization", "percent", use["time"], 100 * use["utilization"].to_numpy()),
            ("waiting_jobs", "jobs", queue["time"], queue["jobs"].to_numpy()),
            ("waiting_gpus", "gpus", queue["time"], queue["gpus"].to_numpy()),
        )
        for name, key, time, values in curves:
            for at, value in self._curve(time.to_numpy(), values):
                yield _event(ph="C", pid=0, name=name, ts=at, args={key: _number(value)})

    def _curve(self, time: np.ndarray, values: np.ndarray) -> Iterator[tuple[int, float]]:
        first, last = self.window
        low = max(int(np.searchsorted(time, first, side="right")) - 1, 0)
        high = int(np.searchsorted(time, last, side="right"))
        if high - low > MAX_POINTS:
            time, values = resample(time, values, start=first, stop=last, bins=MAX_POINTS)
        else:
            time, values = np.maximum(time[low:high], first), values[low:high]
        yield from zip(_us(time).tolist(), np.round(values, 6).tolist(), strict=True)


def timeline(
    outcome: Outcome,
    *,
    window: tuple[float, float] | None = None,
    epoch: str = "",
    max_events: int = MAX_EVENTS,
) -> Timeline:
    """Choose what of a run goes into a time-line.

    Args:
        outcome: the run.
        window: from when until when, s; None = from the first submission, as long as the events
            are at most ``max_events``; jobs are sampled where even an instant has too many.
        epoch: UTC instant of time 0, ISO 8601; "" = unknown.
        max_events: slices, spans and instants that are written, at most.

    Raises:
        SpecError: the window is empty or no window.
    """
    first, last = horizon(outcome)
    if window is not None:
        first, last = window
        if not -np.inf < first < last < np.inf:
            raise SpecError(
                "--timeline-window", f"found {first:g}:{last:g}; expected a start before its end."
            )
    last = math.nextafter(max(first, last), math.inf)  # what begins at the very end, too
    notes: list[str] = []
    times = np.sort(_event_times(outcome, first, last))
    stride, total = 1, len(times)
    if total > max_events:
        until = float(times[max_events])
        if until > first:
            notes.append(
                f"The time-line shows {duration(until - first)} of {duration(last - first)}: "
                f"all {count(total)} events are more than {count(max_events)}, the most that "
                "are written. Choose another window to see more."
            )
            last = until
        else:
            stride = -(-total // max_events)
            notes.append(
                f"The time-line shows 1 in {count(stride)} jobs: all {count(total)} events are "
                f"more than {count(max_events)}, the most that are written."
            )
    if not has_nodes(outcome):
        notes.append("The run knows no nodes: threads of the time-line are jobs, not GPUs.")
    elif outcome.settings.get("sharing") is None:
        notes.append(
            "The run counts the GPUs of a node: the time-line gives each job the lowest free ones."
        )
    use, queue = (table["time"].to_numpy() for table in (outcome.utilization(), outcome.queue()))
    if any(((t >= first) & (t < last)).sum() > MAX_POINTS for t in (use, queue)):
        notes.append(f"Counters are exact means of {count(MAX_POINTS)} equal spans of time.")
    return Timeline(outcome, (first, last), stride, epoch, tuple(notes))


def write_timeline(path: Path, chosen: Timeline) -> None:
    """Write a time-line, packed where the name ends in ``.gz``; it appears whole or not at all.

    The same run gives the same bytes.

    Raises:
        OSError: the file cannot be written; nothing is left behind.
    """
    with storage.replacing(path) as temporary, contextlib.ExitStack() as stack:
        file: Any = stack.enter_context(temporary.open("wb"))
        if path.suffix.lower() == ".gz":
            file = stack.enter_context(
                gzip.GzipFile("", "wb", compresslevel=4, fileobj=file, mtime=0)
            )
        buffered = stack.enter_context(io.BufferedWriter(file, 1 << 20))
        for chunk in chosen.chunks():
            buffered.write(chunk)


def _event_times(outcome: Outcome, first: float, last: float) -> np.ndarray:
    """Return when each slice, end of a wait, and instant of a window comes into it, s."""
    start, end = stay_times(outcome)
    _, begin, until = waits(outcome)
    _, stopped = cut_short(outcome)
    seen = (start < last) & ((end > first) | (start >= first))
    waited = (begin < last) & ((until > first) | (begin >= first))
    return np.concatenate(
        [
            np.maximum(np.repeat(start[seen], num_threads(outcome)[seen]), first),
            np.maximum(np.repeat(begin[waited], 2), first),
            stopped[(stopped >= first) & (stopped < last)],
        ]
    )


def _us(seconds: np.ndarray) -> np.ndarray:
    micro: np.ndarray = np.round(seconds * _US).astype(np.int64)
    return micro


def _number(value: float) -> float | int:
    return int(value) if float(value).is_integer() else float(value)


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode("ascii")


def _named(what: str, name: str, place: int, **where: int) -> Iterator[bytes]:
    """Yield the name of a process or thread, and where it stands among the others."""
    yield _event(ph="M", **where, name=f"{what}_name", args={"name": name})
    yield _event(ph="M", **where, name=f"{what}_sort_index", args={"sort_index": place})


def _event(**fields: Any) -> bytes:
    return _json(fields)


def _job_name(args: dict[str, Any]) -> str:
    return f"job {clean(args['job_id'])}"


def _slice_body(args: dict[str, Any], begin: int, end: int) -> bytes:
    """Return the end of a slice's JSON: what does not change from GPU to GPU."""
    workload = clean(args["workload"]).replace(",", " ") if "workload" in args else ""
    about = {
        "name": _job_name(args),
        "cat": f"run,{workload}" if workload else "run",
        "ts": begin,
        "dur": end - begin,
        "args": args,
    }
    return _json(about)[1:]
