"""``windtunnel why``: why a job waited, and what stopped it, in plain words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windtunnel.report.format import duration, plural
from windtunnel.report.names import clean
from windtunnel.report.result import Part, Result, table_of
from windtunnel.sim.observe.causes import Piece, pieces, seconds_by_cause

if TYPE_CHECKING:
    import pyarrow as pa

_LIMITS = {
    "gpus": "too few GPUs were free",
    "cores": "too few cores were free",
    "memory": "too little memory was free",
    "fragmentation": "enough GPUs were free, but not where it fits",
    "gpu_type": "too few GPUs of its type were free",
    "topology": "enough GPUs were free, but not within its part of the network",
}
_CAUSES = {
    "behind": "behind the first in the queue",
    "would_delay": "its start would have delayed a promised one",
    "power": "the power cap left too little",
    "limit": "the quota of its queue was used up",
    "choice": "the policy chose others",
    "interval": "until the next decision",
    "held": "held back until its time",
    "preempted": "until the next decision after it was stopped",
    "interrupted": "until it was back in the queue",
}
_HAPPENED = {
    "started": "started",
    "interrupted": "stopped by an outage or a failure",
    "finished": "done",
    "failed": "failed, and is over",
}


def cause_of(verdict: str, limit: str | None) -> str:
    """Return a cause of waiting in words."""
    return _LIMITS[limit] if limit is not None else _CAUSES[verdict]


def words_of(piece: Piece) -> str:
    """Return what a row says, in a sentence's words; names are cleaned."""
    other = None if piece.blocker is None else f"job {clean(piece.blocker)}"
    if piece.verdict == "preempted":
        return f"stopped for {other or 'others, as the policy chose'}"
    if piece.verdict in _HAPPENED:
        return _HAPPENED[piece.verdict]
    text = f"waits: {cause_of(piece.verdict, piece.limit)}"
    if other is not None:
        text += f" ({other})"
    if piece.limit is not None or piece.verdict in {"choice", "limit"}:
        text += f"; {piece.free_gpus:g} GPUs were free"
    if piece.promise is not None:
        text += (
            f"; promised a start at {_at(piece.promise)}"
            if other is None
            else (f", which is promised a start at {_at(piece.promise)}")
        )
    return text


def why_result(job: str, run: dict[str, Any], rows: pa.Table) -> Result:
    """Return why a job waited.

    Args:
        job: its id.
        run: what the recording is of.
        rows: its rows, in order of time.
    """
    found = pieces(rows)
    gpus = rows["gpus"][0].as_py()
    began = next((at for at, p in enumerate(found) if p.verdict == "started"), len(found))
    waited, again = (
        sum(p.seconds for p in some if p.waits) for some in (found[:began], found[began:])
    )
    by_cause, all_waits = seconds_by_cause(found), waited + again
    name = f"Job {clean(job)}"
    first = seconds_by_cause(found[:began])
    headline = f"{name} ({plural(gpus, 'GPU')}) waited {duration(waited)}"
    if first:
        most = max(first, key=lambda cause: first[cause])
        headline += f", most of it ({duration(first[most])}) because {_because(*most)}"
    stops = {
        what: sum(piece.verdict == verdict for piece in found)
        for verdict, what in (("preempted", "for others"), ("interrupted", "by outages"))
    }
    stopped = [f"{plural(number, 'time')} {what}" for what, number in stops.items() if number]
    if stopped:
        headline += f"; it was stopped {' and '.join(stopped)}, and waited {duration(again)} more"
    share = [
        (cause_of(*cause), duration(seconds), f"{seconds / all_waits:.1%}")
        for cause, seconds in by_cause.items()
    ]
    line = [
        (_at(p.start), "" if p.end is None else duration(p.seconds), words_of(p)) for p in found
    ]
    parts = [Part("", tables=[("Its wait by cause", table_of(["cause", "time", "share"], share))])]
    parts = parts if share else []
    times = table_of(["at", "for", "what"], line, texts=2)
    return Result(
        f"Why {name[0].lower()}{name[1:]} waited",
        headline=headline + ".",
        parts=[*parts, Part("", tables=[("Its time-line", times)])],
        subtitle=[clean(str(run["policy"])), clean(str(run["cluster"]))],
        data={
            "job": job,
            "gpus": gpus,
            "waited": waited,
            "waited_after_stops": again,
            "causes": [
                {"verdict": verdict, "limit": limit, "seconds": seconds}
                for (verdict, limit), seconds in by_cause.items()
            ],
            "timeline": [vars(piece) for piece in found],
            "run": run,
        },
    )


def _because(verdict: str, limit: str | None) -> str:
    words = cause_of(verdict, limit)
    return f"it stood {words}" if verdict == "behind" else words


def _at(seconds: float) -> str:
    """Return a time of the run as days and a clock."""
    whole, rest = divmod(seconds, 1.0)
    days, clock = divmod(int(whole), 86_400)
    text = f"{clock // 3600:02}:{clock // 60 % 60:02}:{clock % 60:02}"
    text += f"{rest:.3f}"[1:].rstrip("0").rstrip(".") if rest else ""
    return f"{days}d {text}" if days else text
