"""A report of the goodput that a log recorded."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from windtunnel.report.columns import TOP, rows_table
from windtunnel.report.format import count, duration, gpu_time, number, percent, plural, size_text
from windtunnel.report.goodput_rows import SIZES
from windtunnel.report.names import clean
from windtunnel.report.result import Part, Result, left_out_notes, moment, notes_of, subtitle_of
from windtunnel.report.sections import Fact

if TYPE_CHECKING:
    from windtunnel.characterize.goodput import RecordedGoodput
    from windtunnel.report.columns import Columns
    from windtunnel.traces.trace import Trace

_CAUSES = {
    "node_fail": "a node failed",
    "outage": "several nodes failed at once",
    "preempted": "preempted",
}
_SERIES = (
    "Below about 2,000 GPUs a job\u2019s mean time to failure does not follow from the rate of its "
    "nodes: on RSC-1 jobs of 1,024 GPUs ran 7.9 h to a failure, where it says 28.8 h (Kokolis et "
    "al., HPCA\u201925)."
)


def goodput_answer(found: RecordedGoodput, trace: Trace, checkpoint: float | None) -> Result:
    """Return the answer to "how much of the GPU time made progress, and what took the rest?"."""
    whole = found.summary()
    saved = (
        "what they saved is not known: all work of an interrupted attempt counts as lost"
        if checkpoint is None
        else f"jobs are taken to save their work every {duration(checkpoint)}"
    )
    headline = "No job held a GPU for any known time."
    if whole["gpu_time"]:
        stopped = sum(row["num_attempts"] for row in found.by_cause())
        headline = (
            f"{percent(whole['goodput'])} of {gpu_time(whole['gpu_time'])} made progress; the "
            f"cluster interrupted {plural(stopped, 'attempt')} of {count(whole['num_attempts'])}, "
            f"{count(whole['num_failures'])} by failures of nodes."
        )
    sizes = rows_table("GPUs of the job", SIZES, found.by_size(), "size", size_text)
    parts = [Part("By job size", "Intervals are 95 %.", [("Goodput by job size", sizes)])]
    if found.by_cause():
        causes = rows_table("Cause", _BY_CAUSE, found.by_cause(), "cause", _CAUSES.__getitem__)
        parts.append(Part("What interrupted jobs", "", [("By cause", causes)]))
    parts += _nodes(found, trace)
    notes = [f"A log does not tell of checkpoints; {saved}.", _SERIES]
    if found.nodes is None:
        notes.append("The log names no nodes (a column NodeList): lemon nodes cannot be found.")
    if found.unread:
        notes.append(f"{plural(found.unread, 'list')} of nodes cannot be read, and count for none.")
    return Result(
        title=f"Goodput: {clean(trace.name, 80)}",
        subtitle=subtitle_of(trace, gpu_time(whole["gpu_time"])),
        headline=headline,
        facts=_facts(whole),
        parts=parts,
        notes=notes_of(trace, [*left_out_notes(found.recorded), *notes]),
    )


def goodput_data(found: RecordedGoodput) -> dict[str, Any]:
    """Return it as plain data.

    Keys: those of `RecordedGoodput.summary`; ``by_size``, ``by_cause`` (lists of rows);
    ``lemons`` (``node``, ``failures``, ``expected``, ``ratio``, ``p``), ``outages`` (``time``,
    ``attempts``, ``nodes``) and ``node_mtbf`` (s, of the other nodes), null where no node is named.
    """
    nodes = found.nodes
    of_nodes: dict[str, Any] = {"lemons": None, "outages": None, "node_mtbf": None}
    if nodes is not None:
        of_nodes = {
            "lemons": [vars(one) for one in nodes.lemons],
            "outages": [vars(one) for one in nodes.outages],
            "node_mtbf": 1 / nodes.rate if nodes.rate else None,
        }
    return {**found.summary(), "by_size": found.by_size(), "by_cause": found.by_cause(), **of_nodes}


def _facts(whole: dict[str, Any]) -> list[Fact]:
    facts = [
        Fact("Goodput", percent(whole["goodput"])),
        Fact("Lost work", percent(whole["badput_lost_work"])),
        Fact("Effective training time ratio", percent(whole["ettr"])),
        Fact("Failures", count(whole["num_failures"])),
    ]
    if whole["mttf"] is not None:
        facts.append(Fact("Mean time to failure", duration(whole["mttf"]), note="of all jobs"))
    return facts


_BY_CAUSE: Columns = (
    ("attempts", "num_attempts", count),
    ("lost work", "lost_work", gpu_time),
    ("waiting for replacement", "waiting_for_replacement", gpu_time),
)
_LEMONS: Columns = (
    ("failed attempts", "failures", count),
    ("by chance", "expected", number),
    ("times the others\u2019 rate", "ratio", number),
    ("p", "p", "{:.1g}".format),
)
_OUTAGES: Columns = (("attempts", "attempts", count), ("their nodes", "nodes", count))


def _nodes(found: RecordedGoodput, trace: Trace) -> list[Part]:
    if found.nodes is None:
        return []
    lemons = [vars(one) for one in found.nodes.lemons[:TOP]]
    outages = [vars(one) for one in found.nodes.outages[:TOP]]
    lead = (
        "Nodes that fail more often than chance allows; of those called so, 2 % are wrong in the "
        "mean (Benjamini-Hochberg over all nodes). Failures of several nodes at once are none."
    )
    if not lemons:
        lead = "No node fails more often than chance allows. " + lead
    tables = []
    if lemons:
        tables.append(("Lemon nodes, worst first", rows_table("Node", _LEMONS, lemons, "node")))
    if outages:
        since = partial(moment, trace)
        tables.append(("Outages", rows_table("From", _OUTAGES, outages, "time", since)))
    return [Part("Which nodes fail", lead, tables, tells=True)]
