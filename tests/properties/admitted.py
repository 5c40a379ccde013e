"""What limits and quotas allow at every instant, from stays and the description of a site alone.

Slurm's by sacctmgr(1) and https://slurm.schedmd.com/resource_limits.html, Kueue's by
https://kueue.sigs.k8s.io/docs/concepts/cluster_queue and ``../cohort``; not by the engine.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import windtunnel as wt
    from windtunnel.policies.kueue.manifests import Manifests
    from windtunnel.site.slurm import SlurmAssociation, SlurmBounds, SlurmQos, SlurmSite

NEAR = 1e-6
MINUTE = 60.0


@dataclass(frozen=True)
class Held:
    """A stay of a job: what it is, and what it holds.

    Attributes:
        limit: s, whole minutes; inf = not known.
        start, end: s.
        amounts: of each TRES: gpu and node as they were given, cpu as asked for.
        array: of which array the job is a task; "" = of none.
    """

    row: int
    user: str
    account: str
    qos: str
    partition: str
    limit: float
    start: float
    end: float
    nodes: tuple[int, ...]
    amounts: dict[str, float]
    array: str
    most_of_array: float
    exclusive: bool
    licenses: str


def stays_of(out: wt.Outcome, site: SlurmSite) -> list[Held]:
    """Return the stays of a run under policy ``slurm``, each with what its job is."""
    until = out.settings["until"]
    jobs = out.jobs.to_pylist()
    found = []
    for stay in out.segments.to_pylist():
        job = jobs[stay["row"]]
        account = job.get("account") or job["vc"] or ""
        chain = associations(site, account, job["user"] or "")
        defaults = (one.default_qos for one in chain if one.default_qos)
        asked = job["estimate"]
        name, _, task = str(job["job_id"]).rpartition("_")
        found.append(
            Held(
                row=stay["row"],
                user=job["user"] or "",
                account=account,
                qos=job.get("qos") or next(defaults, "normal"),
                partition=job.get("partition") or site.default_partition,
                limit=math.inf if asked is None else MINUTE * max(math.ceil(asked / MINUTE), 1),
                start=stay["start"],
                end=until if stay["end"] is None else stay["end"],
                nodes=tuple(stay["nodes"]),
                amounts={"gpu": stay["num_gpus"], "cpu": job["num_cpus"] or 0.0},
                array=name if task.isdigit() else "",
                most_of_array=job.get("array_limit") or math.inf,
                exclusive=str(job.get("exclusive")).lower() in ("true", "yes", "1"),
                licenses=job.get("licenses") or "",
            )
        )
    return found


def associations(site: SlurmSite, account: str, user: str) -> list[SlurmAssociation]:
    """Return the association of a user in an account, and those above it that are there."""
    known = {(one.account, one.user): one for one in site.associations}
    found = [known[account, user]] if (account, user) in known else []
    while found:
        last = found[-1]
        above = last.account if last.user else last.parent
        if (above, "") not in known:
            break
        found.append(known[above, ""])
    return found


def slurm_limits_are_kept(out: wt.Outcome, site: SlurmSite) -> None:
    """Check all limits of a site at each instant at which a job starts."""
    held = [stay for stay in stays_of(out, site) if stay.end > stay.start]
    for one in held:
        _partition_takes(site, one)
        if "limits" in site.settings.enforce:
            _is_small_enough(site, one)
    for now in sorted({stay.start for stay in held}):
        there = [stay for stay in held if stay.start <= now < stay.end]
        _arrays_are_throttled(there)
        _exclusive_nodes_are(site, there)
        _licences_suffice(site, there)
        if "limits" in site.settings.enforce:
            # Who started after a job, at the same instant, may have limits that pass over its own.
            for number, one in enumerate(there):
                if one.start == now:
                    _limits_hold(site, one, there[: number + 1], now)


def _partition_takes(site: SlurmSite, stay: Held) -> None:
    part = next(one for one in site.partitions if one.name == stay.partition)
    names = [node.name for node in site.nodes]
    assert {names[node] for node in stay.nodes} <= set(part.nodes)
    assert part.max_nodes is None or len(stay.nodes) <= part.max_nodes
    assert part.max_time is None or stay.limit == math.inf or stay.limit <= part.max_time
    assert part.allowed_accounts is None or stay.account in part.allowed_accounts
    assert part.allowed_qos is None or stay.qos in part.allowed_qos
    assert stay.account not in part.denied_accounts
    assert stay.qos not in part.denied_qos


def _stating(site: SlurmSite, stay: Held) -> tuple[list[SlurmQos], list[SlurmAssociation]]:
    """Return the QOS that state limits of a job, the first one first, and its associations."""
    qos = {one.name: one for one in site.qos}
    part = next(one for one in site.partitions if one.name == stay.partition)
    own, its = qos.get(stay.qos), qos.get(part.qos)
    order = [own, its] if own is not None and "OverPartQOS" in own.flags else [its, own]
    chain = associations(site, stay.account, stay.user)
    return [one for one in order if one is not None], chain


def _is_small_enough(site: SlurmSite, stay: Held) -> None:
    """The first that states a limit on each job decides: QOS, then associations."""
    qos, chain = _stating(site, stay)
    bounds = [one.bounds for one in (*qos, *chain)]
    for tres in ("gpu", "node", "cpu"):
        limit = next((of.job[tres] for of in bounds if tres in of.job), math.inf)
        assert _amount(stay, tres) <= limit
    wall = next((of.wall for of in bounds if of.wall is not None), math.inf)
    assert stay.limit <= wall or stay.limit == math.inf


def _amount(stay: Held, tres: str) -> float:
    return float(len(stay.nodes)) if tres == "node" else stay.amounts.get(tres, 0.0)


def _limits_hold(site: SlurmSite, one: Held, there: Sequence[Held], now: float) -> None:
    """Check those limits that a job which starts now counts against."""
    qos, chain = _stating(site, one)
    stated: set[tuple[str, str]] = set()
    for of in qos:
        alike = [stay for stay in there if of in _stating(site, stay)[0]]
        ways = (
            ("group", alike, of.bounds.group, of.bounds.group_jobs),
            ("account", [s for s in alike if s.account == one.account], of.bounds.account,
             of.bounds.account_jobs),
            ("user", [s for s in alike if s.user == one.user], of.bounds.user,
             of.bounds.user_jobs),
        )  # fmt: skip
        new = set()
        for way, among, tres, jobs in ways:
            new |= _hold(among, way, tres, jobs, stated)
        new |= _time_holds(alike, of.bounds, stated, now)
        stated |= new
    for at in chain:
        alike = [s for s in there if at in associations(site, s.account, s.user)]
        _hold(alike, "group", at.bounds.group, at.bounds.group_jobs, stated)
        _time_holds(alike, at.bounds, stated, now)
    jobs = next((at.bounds.jobs for at in chain if at.bounds.jobs is not None), None)
    if jobs is not None and not {("user", "jobs"), ("account", "jobs")} & stated:
        own = [s for s in there if (s.account, s.user) == (one.account, one.user)]
        assert len(own) <= jobs


def _hold(
    among: Sequence[Held],
    way: str,
    tres: dict[str, int],
    jobs: int | None,
    stated: set[tuple[str, str]],
) -> set[tuple[str, str]]:
    """Check limits on some jobs that nobody stated before; return what they state."""
    for name, limit in tres.items():
        if (way, name) in stated:
            continue
        if name == "node":
            assert len({node for stay in among for node in stay.nodes}) <= limit
        else:
            assert sum(_amount(stay, name) for stay in among) <= limit
    if jobs is not None and (way, "jobs") not in stated:
        assert len(among) <= jobs
    return {(way, name) for name in tres} | ({(way, "jobs")} if jobs is not None else set())


def _time_holds(
    among: Sequence[Held], bounds: SlurmBounds, stated: set[tuple[str, str]], now: float
) -> set[tuple[str, str]]:
    """Check what running jobs may still use; Slurm itself takes it for more, until it looks."""
    for name, limit in bounds.group_run_minutes.items():
        if ("run", name) not in stated and name != "cpu":
            to_come = (max(stay.limit - (now - stay.start), 0.0) for stay in among)
            used = sum(
                _amount(stay, name) * time for stay, time in zip(among, to_come, strict=True)
            )
            assert used <= MINUTE * limit + NEAR
    return {("run", name) for name in bounds.group_run_minutes}


def _arrays_are_throttled(there: Sequence[Held]) -> None:
    for array in {stay.array for stay in there} - {""}:
        tasks = [stay for stay in there if stay.array == array]
        assert len(tasks) <= min(stay.most_of_array for stay in tasks)


def _exclusive_nodes_are(site: SlurmSite, there: Sequence[Held]) -> None:
    alone = {part.name for part in site.partitions if part.exclusive}
    for one in there:
        if one.exclusive or one.partition in alone:
            for other in there:
                assert other is one or not {*one.nodes} & {*other.nodes}


def _licences_suffice(site: SlurmSite, there: Sequence[Held]) -> None:
    used: dict[str, int] = {}
    for stay in there:
        for words in filter(None, stay.licenses.split(",")):
            name, _, count = words.partition(":")
            used[name] = used.get(name, 0) + int(count or 1)
    assert all(count <= site.settings.licenses[name] for name, count in used.items())


def kueue_quotas_are_kept(out: wt.Outcome, manifests: Manifests) -> None:
    """Check the quotas of GPUs of one flavor, in trees of cohorts, whenever a job starts.

    A queue lends what it does not use, up to its lending limit. So what it uses beyond what it
    keeps for itself counts in its cohort, which owns what is lent there, and so on to the root.
    """
    whose, asked = out.jobs["vc"].to_pylist(), out.jobs["num_gpus"].to_pylist()
    until = out.settings["until"]
    stays = [
        (stay["row"], stay["start"], until if stay["end"] is None else stay["end"])
        for stay in out.segments.to_pylist()
    ]
    for now in sorted({start for _, start, _ in stays}):
        used = dict.fromkeys((queue.name for queue in manifests.queues), 0.0)
        for row, start, end in stays:
            if start <= now < end:
                used[whose[row]] += asked[row]
        _trees_hold(manifests, used)


def _trees_hold(manifests: Manifests, used: dict[str, float]) -> None:
    parents = {cohort.name: cohort.parent for cohort in manifests.cohorts}
    parents |= {queue.cohort: parents.get(queue.cohort, "") for queue in manifests.queues}
    parents.pop("", None)
    stated: dict[str, Any] = {cohort.name: cohort for cohort in manifests.cohorts}
    queues = {queue.name: queue for queue in manifests.queues}

    def below(name: str, place: Any, above: str, of_children: list[tuple[float, float]]) -> Any:
        """Return what goes up: used beyond what is kept, and what may be lent; check the limits."""
        quota = _quota(place)
        owns = (quota.nominal if quota else 0) + sum(lent for _, lent in of_children)
        uses = used.get(name, 0.0) if place in queues.values() else 0.0
        uses += sum(more for more, _ in of_children)
        if not above:
            assert uses <= owns + NEAR, (name, uses, owns)
            return 0.0, 0.0
        if quota and quota.borrowing_limit is not None:
            assert uses <= owns + quota.borrowing_limit + NEAR, (name, uses, owns)
        keeps = 0.0
        if quota and quota.lending_limit is not None:
            keeps = max(0.0, owns - quota.lending_limit)
        return max(0.0, uses - keeps), owns - keeps

    def cohort(name: str) -> Any:
        children = [below(q.name, q, name, []) for q in queues.values() if q.cohort == name]
        children += [cohort(other) for other, above in parents.items() if above == name]
        return below(name, stated.get(name), parents[name], children)

    for name in [name for name, above in parents.items() if not above]:
        cohort(name)
    for queue in queues.values():
        if not queue.cohort:
            below(queue.name, queue, "", [])


def _quota(place: Any) -> Any:
    """Return the quota of GPUs that a queue or a cohort states; None = it states none."""
    return next(_quotas(place), None)


def _quotas(place: Any) -> Iterator[Any]:
    for group in place.resource_groups if place is not None else ():
        for flavor in group.flavors:
            yield from flavor.quotas.values()
