"""``windtunnel whatif --kueue``: two configurations of Kueue, or one more job on a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windtunnel.cli.flying import is_typed, with_manifests
from windtunnel.errors import SpecError
from windtunnel.plain import fields_of
from windtunnel.report.format import count, duration, percent, plural
from windtunnel.report.names import clean
from windtunnel.report.result import Part, Result, table_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from windtunnel.policies.kueue.least_quota import LeastQuota
    from windtunnel.policies.kueue.moves import Moves
    from windtunnel.policies.kueue.one_job import Ruling
    from windtunnel.policies.kueue.snapshots import Snapshot
    from windtunnel.policies.kueue.written_jobs import WrittenJob
    from windtunnel.report.sections import Table
    from windtunnel.study.whatif import WhatIf

#: Most domains of an answer's table; the page and --json have all.
_MOST = 40


def is_about_one_job(asked: dict[str, Any], trace: str | None) -> bool:
    """Return whether a snapshot is asked about, not a log.

    Raises:
        SpecError: half of the question is missing, or it is mixed with one about a log.
    """
    if asked["snapshot"] is None and asked["job"] is None:
        if trace is None:
            raise SpecError("whatif", "expected a trace; or --kueue, --snapshot and --job.")
        return False
    if trace is not None:
        message = "asks about a cluster as it stands; leave out the trace, or --snapshot and --job."
        raise SpecError("--snapshot", message)
    for option in ("snapshot", "job"):
        if asked[option] is None:
            raise SpecError(f"--{option}", "is missing: --snapshot and --job go together.")
    if len(asked["kueue"]) != 1:
        raise SpecError("--snapshot", "needs one --kueue DIR, the manifests of the queues.")
    for option in asked.keys() - {"kueue", "snapshot", "job"}:
        if is_typed(option):
            message = "is about a log; leave it out, or --snapshot and --job."
            raise SpecError(f"--{option.replace('_', '-')}", message)
    return True


def manifests_changed(asked: dict[str, Any]) -> dict[str, Any]:
    """Return options with the manifests of ``--kueue`` as the policies before and after.

    Raises:
        SpecError: three or more are given, or another policy is asked for as well.
    """
    folders = asked["kueue"]
    if not folders:
        return asked
    if len(folders) > 2:  # noqa: PLR2004 - before and after
        raise SpecError("--kueue", f"found {len(folders)}; expected one, or one and another.")
    plain = asked["policy"]
    (before,) = with_manifests([plain], folders[0])
    found = {**asked, "policy": before}
    if len(folders) > 1:
        if asked["to_policy"] is not None or asked["quotas"] is not None:
            message = "is another policy already; leave out --to-policy and --quotas."
            raise SpecError("a second --kueue", message)
        (found["to_policy"],) = with_manifests([plain], folders[1])
    return found


def queues_part(found: WhatIf, policies: Sequence[Any]) -> tuple[Part, list[dict[str, Any]]]:
    """Return what changes for each queue, to show and as data.

    Args:
        found: the two runs.
        policies: before and after, ``kueue`` with their manifests.
    """
    from windtunnel.study.whatif_queues import by_cluster_queue

    rows = by_cluster_queue(found, [policy.manifests for policy in policies])

    def both(row: dict[str, Any], key: str, text_of: Any) -> str:
        return " \u2192 ".join(
            "\u2013" if row[f"{side}_{key}"] is None else text_of(row[f"{side}_{key}"])
            for side in ("before", "after")
        )

    def span(row: dict[str, Any]) -> str:
        if row["low_wait"] is None:
            return ""
        ends = [row["low_wait"], row["high_wait"]]
        return " to ".join(duration(of) if of <= 0 else f"+{duration(of)}" for of in ends)

    columns = ("queue", "admitted", "mean wait", "interval of the change", "P90 of the waits",
               "preemptions", "use of its quota")  # fmt: skip
    cells = [
        (
            clean(row["queue"]),
            both(row, "admitted", "{:,}".format),
            both(row, "avg_wait", duration),
            span(row),
            both(row, "p90_wait", duration),
            both(row, "preemptions", "{:,}".format),
            both(row, "use", percent),
        )
        for row in rows
    ]
    lead = "As it is \u2192 as it might be; above 100 % a queue borrows."
    return Part("By ClusterQueue", lead, [("By ClusterQueue", table_of(columns, cells))]), rows


def one_job_result(asked: dict[str, Any]) -> Result:
    """Return what would happen to one more job.

    Raises:
        WindtunnelError: a manifest, the snapshot or the job is wrong.
    """
    from windtunnel.policies.kueue.least_quota import least_quotas
    from windtunnel.policies.kueue.manifests import read_manifests
    from windtunnel.policies.kueue.one_job import ruling
    from windtunnel.policies.kueue.snapshots import read_snapshot
    from windtunnel.policies.kueue.written_jobs import read_job
    from windtunnel.policies.kueue.yaml_files import documents

    manifests = read_manifests(asked["kueue"][0])
    snapshot = read_snapshot(asked["snapshot"], manifests)
    given = list(documents(asked["job"]))
    if len(given) != 1 or not isinstance(given[0].data, dict):
        raise SpecError(asked["job"], f"found {len(given)} documents; expected one job.")
    job = read_job(given[0], manifests)
    found = ruling(manifests, snapshot, job, moves=True)
    quotas = least_quotas(manifests, snapshot, job)
    return _answer(job, found, quotas, snapshot, manifests.gates.in_words)


def _answer(
    job: WrittenJob, found: Ruling, quotas: Sequence[LeastQuota], snapshot: Snapshot, gates: str
) -> Result:
    """Return a ruling to show, with the gates that were assumed."""
    name = clean(job.workload.key)
    notes = [
        (
            f"The snapshot: {plural(len(snapshot.held), 'admitted workload')}, "
            f"{count(len(snapshot.waiting))} waiting, {count(snapshot.over)} over or not active."
        ),
        (
            f"Kueue's feature gates are taken {gates}; what others than Workloads hold on the "
            "nodes, admission checks and past use of LocalQueues are not looked at."
        ),
    ]
    if found.ahead:
        notes.append(f"Before it in its queue wait: {_listed(found.ahead)}.")
    if found.let_in:
        notes.append(f"Admitted without it, of those that wait: {_listed(found.let_in)}.")
    if snapshot.other:
        others = ", ".join(f"{n:,} {clean(kind)}" for kind, n in snapshot.other.items())
        notes.append(f"Of the snapshot not read: {others}.")
    cautions = []
    if not (snapshot.held or snapshot.waiting or snapshot.over):
        cautions.append("The snapshot holds no Workload: the cluster is taken to be empty.")
    if found.lost:
        cautions.append(
            f"{plural(found.lost, 'pod')} of admitted workloads stand on domains that no Node of "
            "the manifests has: what they hold is counted as free."
        )
    return Result(
        title=f"What if: {name}",
        headline=_headline(name, found, quotas),
        parts=list(_parts(found, quotas)),
        cautions=cautions,
        notes=notes,
        data=_data(job, found, quotas),
    )


def _headline(name: str, found: Ruling, quotas: Sequence[LeastQuota]) -> str:
    """Return the answer in a sentence or two."""
    if found.admitted:
        flavors = dict.fromkeys(f for of in found.stands for f in of.flavors.values())
        verdict = f"{name} is admitted by {clean(found.queue)}"
        verdict += f" on {_listed(flavors)}" if flavors else ", asking for nothing that it owns"
        if found.preempted:
            return f"{verdict}, after {plural(len(found.preempted), 'preemption')}."
        return f"{verdict}; nobody is preempted."
    verdict = f"{name} is not admitted: {clean(found.refused, 300)}."
    if found.moves is not None:
        moved = plural(found.moves.pods, "pod")
        where = clean("/".join(found.moves.domain))
        return f"{verdict} It would fit {where} if {moved} of others moved."
    if quotas:
        return f"{verdict} {_from_quota(quotas)}"
    return f"{verdict} No nominal quota of its queue changes that." if found.queue else verdict


def _from_quota(quotas: Sequence[LeastQuota]) -> str:
    """Return from which quotas of the first flavor on a job that waits is admitted."""
    from windtunnel.policies.kueue.quantities import shown

    first = [of for of in quotas if of.flavor == quotas[0].flavor]
    least = " and ".join(
        f"{shown(of.resource, of.least)} {clean(of.resource)} (now {shown(of.resource, of.now)})"
        for of in first
    )
    return f"It is with a nominal quota of at least {least} of {clean(first[0].flavor)}."


def _listed(names: Iterable[str]) -> str:
    """Return a few names, and how many more there are."""
    every = list(names)
    few = ", ".join(clean(name) for name in every[:5])
    return f"{few} and {len(every) - 5:,} more" if len(every) > 5 else few  # noqa: PLR2004


def _parts(found: Ruling, quotas: Sequence[LeastQuota]) -> Iterator[Part]:
    """Yield the tables of an answer."""
    from windtunnel.policies.kueue.quantities import shown

    stands = [
        (clean(of.name), clean(path), f"{pods:,}")
        for of in found.stands
        for path, pods in (
            [("/".join(values), pods) for values, pods in of.domains]
            or [(", ".join(dict.fromkeys(of.flavors.values())), of.pods)]
        )
    ]
    if stands:
        more = f"{len(stands):,} domains; the first {_MOST}." if len(stands) > _MOST else ""
        table = table_of(("pod set", "where", "pods"), stands[:_MOST], texts=1)
        yield Part("Where it stands", more, [("Where it stands", table)])
    if found.preempted:
        gone = [tuple(clean(word) for word in of) for of in found.preempted]
        table = table_of(("workload", "queue", "reason"), gone, texts=2)
        yield Part("Who goes for it", "", [("Who goes for it", table)])
    if found.moves is not None:
        yield Part(
            "Moves that would make room",
            "Each finds places as it asks for them itself; whoever is not needed stays.",
            [("Moves that would make room", _moves_table(found.moves))],
        )
    if found.quotas:
        rows = [
            (clean(of.flavor), clean(of.resource),
             *(shown(of.resource, n) for n in of[2:]))
            for of in found.quotas
        ]  # fmt: skip
        columns = ("flavor", "resource", "asked for", "owned", "free now", "at most ever")
        caption = f"Quota of {clean(found.queue)}"
        yield Part(caption, "", [(caption, table_of(columns, rows, texts=1))])
    if quotas:
        least = [
            (clean(of.flavor), clean(of.resource), shown(of.resource, of.now),
             shown(of.resource, of.least),
             "\u2013" if of.unharmed is None else shown(of.resource, of.unharmed))
            for of in quotas
        ]  # fmt: skip
        heads = ("flavor", "resource", "now", "admitted from", "and nobody goes from")
        caption = "From which nominal quota on"
        yield Part(caption, "", [(caption, table_of(heads, least, texts=1))])


def _moves_table(moves: Moves) -> Table:
    """Return who would move, from where to where."""
    rows = [
        (clean(of.workload), _leaves(of.before), _leaves(of.after), f"{of.pods:,}")
        for of in moves.moves
    ]
    return table_of(("workload", "from", "to", "pods"), rows, texts=2)


def _leaves(leaves: Sequence[tuple[tuple[str, ...], int]]) -> str:
    """Return leaves with their pods in a few words."""
    return _listed(f"{'/'.join(path)} ({pods:,})" for path, pods in leaves)


def _data(job: WrittenJob, found: Ruling, quotas: Sequence[LeastQuota]) -> dict[str, Any]:
    """Return an answer as plain data.

    Keys: ``job``, ``queue``, ``admitted``, ``refused``, ``pod_sets`` (``name``, ``pods``,
    ``flavors``, ``domains``: values and pods), ``preempted`` (``workload``, ``queue``,
    ``reason``), ``moves`` (``domain``, ``pods``, ``moves``), ``ahead``, ``let_in``, ``quotas`` and
    ``least_quotas`` (CPU in thousandths, memory in bytes).
    """
    return {
        "job": job.workload.key,
        **fields_of(found, "queue", "admitted", "refused"),
        "pod_sets": [
            {**of._asdict(), "domains": [[list(values), pods] for values, pods in of.domains]}
            for of in found.stands
        ],
        "preempted": [of._asdict() for of in found.preempted],
        "moves": None
        if found.moves is None
        else {**found.moves._asdict(), "moves": [of._asdict() for of in found.moves.moves]},
        "ahead": list(found.ahead),
        "let_in": list(found.let_in),
        "quotas": [of._asdict() for of in found.quotas],
        "least_quotas": [of._asdict() for of in quotas],
    }
