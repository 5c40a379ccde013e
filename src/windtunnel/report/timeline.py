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
import os
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.errors import SpecError
from windtunnel.report.format import count, duration
from windtunnel.report.names import MAX_TEXT, clean
from windtunnel.report.threads import NO_GPUS, SLOTS, Slices, num_threads, slices, stay_times
from windtunnel.sim.flight import NOT_SUBMITTED, REJECTED
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
#: Thread numbers of a GPU's further shares: a step above every GPU's own.
_SHARE_STEP = 1000
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
        for part in (self._names(), self._slices(), self._stops(), self._waits(), self._counters()):
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
        """Row of each job that appears -> what is told of it, harmless texts all of them."""
        outcome = self.outcome
        rows = np.union1d(outcome.flight.segment_job[self._chosen], self._waiting[0])
        texts = {name: outcome.jobs[name].take(rows).to_pylist() for name in ("job_id", *_ARGS)}
        told: dict[int, dict[str, Any]] = {}
        for at, row in enumerate(rows.tolist()):
            words = {name: column[at] for name, column in texts.items()}
            told[row] = {
                **{name: clean(word, MAX_TEXT) for name, word in words.items() if word is not None},
                "gpus": _number(outcome.num_gpus[row]),
                "submit_s": float(outcome.submit_time[row]),
            }
        return told

    def _names(self) -> Iterator[bytes]:
        """Yield the names of processes and threads, in the order in which to show them."""
        yield _event(ph="M", pid=0, name="process_name", args={"name": "cluster"})
        yield _event(ph="M", pid=0, name="process_sort_index", args={"sort_index": 0})
        drawn = self._drawn
        process, tid, order = drawn.process, _thread(drawn.column, drawn.lane), _order(drawn)
        used = {
            (p, t): (o, c, lane)
            for p, t, o, c, lane in zip(
                *(values.tolist() for values in (process, tid, order, drawn.column, drawn.lane)),
                strict=True,
            )
        }
        cluster = self.outcome.cluster
        kinds = [kind for kind in cluster.node_types for _ in range(kind.count)]
        if has_nodes(self.outcome) and cluster.num_gpus + len(kinds) <= _NAMES_SHARE * MAX_EVENTS:
            slotted = self.outcome.settings.get("sharing") == "pooled"
            for node, kind in enumerate(kinds):
                for gpu in range(0 if slotted else kind.gpus):
                    used.setdefault((node, gpu), (gpu, gpu, 0))
            shown = [*range(len(kinds)), *([len(kinds)] if (process == len(kinds)).any() else [])]
        else:
            shown = np.unique(process).tolist()
        for node in shown:
            pid = node + 1
            yield _event(ph="M", pid=pid, name="process_name", args={"name": self._node(node)})
            yield _event(ph="M", pid=pid, name="process_sort_index", args={"sort_index": pid})
        for (node, thread), (place, column, lane) in sorted(used.items()):
            at = {"ph": "M", "pid": node + 1, "tid": thread}
            yield _event(**at, name="thread_name", args={"name": _thread_name(column, lane)})
            yield _event(**at, name="thread_sort_index", args={"sort_index": place})

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
        what = f"{kind.gpus} {clean(kind.gpu_type)}" if kind.gpu_type else f"{kind.gpus} GPUs"
        return f"node {node} ({what})"

    def _slices(self) -> Iterator[bytes]:
        outcome, drawn = self.outcome, self._drawn
        start, end = stay_times(outcome)
        begins, ends = (_us(np.clip(times, *self.window)).tolist() for times in (start, end))
        cut = (start < self.window[0]) | (end > self.window[1])
        rows = outcome.flight.segment_job.tolist()
        columns = (drawn.stay, drawn.process + 1, _thread(drawn.column, drawn.lane))
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
        stays, when = _cut_short(self.outcome)
        first, last = self.window
        seen = (when >= first) & (when < last)
        at = dict(zip(stays[seen].tolist(), _us(when[seen]).tolist(), strict=True))
        drawn = self._drawn
        stay, where = np.unique(drawn.stay, return_index=True)
        verb = "preempt" if self.outcome.flight.interruptions is None else "stop"
        tid = _thread(drawn.column, drawn.lane)
        rows = self.outcome.flight.segment_job
        for one, index in zip(stay.tolist(), where.tolist(), strict=True):
            if one in at:
                yield _event(
                    ph="i",
                    pid=int(drawn.process[index]) + 1,
                    tid=int(tid[index]),
                    name=f"{verb} {_job_name(self._jobs[int(rows[one])])}",
                    cat="preemption" if verb == "preempt" else "interruption",
                    ts=at[one],
                    s="t",
                )

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
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with contextlib.ExitStack() as stack:
            file: Any = stack.enter_context(temporary.open("wb"))
            if path.suffix.lower() == ".gz":
                file = stack.enter_context(
                    gzip.GzipFile("", "wb", compresslevel=4, fileobj=file, mtime=0)
                )
            buffered = stack.enter_context(io.BufferedWriter(file, 1 << 20))
            for chunk in chosen.chunks():
                buffered.write(chunk)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def waits(outcome: Outcome) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return each time that a job waited: its row, from when, and until when (s), shape (w,).

    A job waits from its submission, or from when it was taken off its GPUs, to its next start; to
    the horizon where there is none. Waits of no length are left out.
    """
    flight = outcome.flight
    order = np.argsort(flight.segment_job, kind="stable")
    job = flight.segment_job[order]
    fresh = np.append(True, job[1:] != job[:-1]) if len(job) else np.empty(0, dtype=bool)
    ended = flight.segment_end[order]
    since = np.where(fresh, outcome.submit_time[job], np.roll(ended, 1))
    row, until = [job], [flight.segment_start[order]]
    begin = [since]
    known = np.flatnonzero((flight.status != REJECTED) & (flight.status != NOT_SUBMITTED))
    latest = outcome.submit_time.copy()
    latest[job] = ended  # a job's last stay is written last; NaN = it runs on
    left = known[np.isnan(flight.end[known]) & ~np.isnan(latest[known])]
    row.append(left)
    begin.append(latest[left])
    until.append(np.full(len(left), horizon(outcome)[1]))
    rows, begins, ends = (np.concatenate(parts) for parts in (row, begin, until))
    real = ends > begins
    return rows[real], begins[real], ends[real]


def _cut_short(outcome: Outcome) -> tuple[np.ndarray, np.ndarray]:
    """Return the stays that ended before their job was over, and when (s)."""
    flight = outcome.flight
    last = np.full(len(outcome.jobs), -1, dtype=np.int64)
    last[flight.segment_job] = np.arange(len(flight.segment_job))
    ended = ~np.isnan(flight.segment_end)
    final = np.zeros(len(ended), dtype=bool)
    final[last[(last >= 0) & ~np.isnan(flight.end)]] = True
    stays = np.flatnonzero(ended & ~final)
    return stays, flight.segment_end[stays]


def _event_times(outcome: Outcome, first: float, last: float) -> np.ndarray:
    """Return when each slice, end of a wait, and instant of a window comes into it, s."""
    start, end = stay_times(outcome)
    _, begin, until = waits(outcome)
    _, stopped = _cut_short(outcome)
    seen = (start < last) & ((end > first) | (start >= first))
    waited = (begin < last) & ((until > first) | (begin >= first))
    return np.concatenate(
        [
            np.maximum(np.repeat(start[seen], num_threads(outcome)[seen]), first),
            np.maximum(np.repeat(begin[waited], 2), first),
            stopped[(stopped >= first) & (stopped < last)],
        ]
    )


def _thread(column: np.ndarray, lane: np.ndarray) -> np.ndarray:
    """Return thread numbers: a GPU's own is its number in the node."""
    base = np.where(column == SLOTS, 0, np.where(column == NO_GPUS, SLOTS, column))
    numbers: np.ndarray = base + np.where(column >= SLOTS, lane, lane * _SHARE_STEP)
    return numbers


def _order(drawn: Slices) -> np.ndarray:
    """Return where threads stand within their process: shares beside their GPU."""
    order: np.ndarray = np.where(
        drawn.column >= SLOTS,
        (drawn.column << 8) + drawn.lane,
        drawn.column * _SHARE_STEP + drawn.lane,
    )
    return order


def _thread_name(column: int, lane: int) -> str:
    if column == SLOTS:
        return f"slot {lane}"
    if column == NO_GPUS:
        return f"no GPU, slot {lane}"
    return f"GPU {column}" if lane == 0 else f"GPU {column}, share {lane + 1}"


def _us(seconds: np.ndarray) -> np.ndarray:
    micro: np.ndarray = np.round(seconds * _US).astype(np.int64)
    return micro


def _number(value: float) -> float | int:
    return int(value) if float(value).is_integer() else float(value)


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode("ascii")


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
