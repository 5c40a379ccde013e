"""``windtunnel whatif``: what would change with more nodes, another policy, another rule."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from windtunnel.cli.options import (
    OneOf,
    Seconds,
    reading_options,
    seed_option,
)
from windtunnel.cli.presenting import PAGES, presented

if TYPE_CHECKING:
    import pyarrow as pa

    from windtunnel.characterize.cost import Prices
    from windtunnel.cluster.spec import ClusterSpec
    from windtunnel.report.result import Result
    from windtunnel.traces.trace import Trace

_NODES = re.compile(r"([+-][0-9]{1,6})(?::(.+))?", re.ASCII)
#: Options that say what is to be different, in the order of the answer.
_CHANGES = (
    *("nodes", "to_cluster", "to_policy", "to_queueing", "quotas", "idle_kill", "limits", "share"),
)


@click.command(short_help="What would change: nodes, policy, quotas, rules, sharing?")
@click.argument("trace", required=False)
@reading_options
@click.option("--nodes", metavar="+N|-N[:TYPE]", help="So many nodes more or fewer (a pool: GPUs).")
@click.option("--to-cluster", metavar="SPEC", help="Another cluster: another mix of GPUs.")
@click.option("--to-policy", metavar="NAME", help="Another policy.")
@click.option("--to-queueing", metavar="NAME", help="Another head-of-line rule.")
@click.option("--quotas", metavar="FILE.toml", help="Policy quota with these quotas.")
@click.option(
    "--kueue",
    multiple=True,
    metavar="DIR|FILE.yaml",
    help="Kueue's manifests as they are, policy kueue; given twice: as they might be.",
)
@click.option(
    "--snapshot",
    metavar="FILE.yaml",
    help="With --kueue and --job, without a trace: the Workloads of a cluster as it stands "
    "(kubectl get workloads -A -o yaml).",
)
@click.option("--job", metavar="FILE.yaml", help="One more Workload, Job or JobSet, for it.")
@click.option(
    "--idle-kill",
    type=Seconds(),
    help="End jobs that have been idle for so long at their end, by --telemetry.",
)
@click.option("--telemetry", metavar="PATH", help="DCGM or Prometheus exports, for --idle-kill.")
@click.option(
    "--limits",
    type=float,
    metavar="X",
    help="Time limits of X times the true run times, 1 = exact; backfilling goes by them.",
)
@click.option(
    "--share",
    type=float,
    metavar="X",
    help="Jobs of one GPU get this part of it; --slowdown says how much slower sharing is.",
)
@click.option("--slowdown", metavar="MODEL", help="With --share, as for `simulate`: share=0.9.")
@click.option(
    "--keep-p90-wait",
    type=Seconds(),
    metavar="TIME",
    help="The inverse: the fewest nodes whose P90 of the waits is at most this.",
)
@click.option("--policy", default="fifo", show_default=True, metavar="NAME", help="As it is now.")
@click.option("--queueing", metavar="NAME", help="As it is now.  [default: the policy's own]")
@click.option("--placement", metavar="NAME", help="As for `simulate`.")
@click.option(
    "--cluster",
    metavar="SPEC",
    help="As it is now, as for `simulate`.  [default: the trace's own, else a pool of as many GPUs "
    "as were ever held at once]",
)
@click.option(
    "--blocks",
    type=OneOf("weeks", "users"),
    default="weeks",
    show_default=True,
    metavar="weeks|users",
    help="What intervals are drawn over.",
)
@click.option("--price", type=click.FloatRange(min=0), metavar="X", help="Price of a GPU hour.")
@click.option("--prices", metavar="FILE.toml", help="Prices by type, as for `report cost`.")
@seed_option("Seed of draws, placement and a synthetic trace.  [default: 0]")
@presented(PAGES, "Write the answer as one page with charts.", metavar="FILE.html")
def whatif(*, trace: str | None, **asked: Any) -> Result:
    """Fly TRACE as things are and as they might be, and tell what changes, with intervals.

    All changes that are named are made together. Waits, completion times, use and cost before and
    after; intervals of the changes by a paired bootstrap over weeks or users.

    TRACE is a name (`windtunnel traces`), a file such as an sacct log, or - for standard input.
    With --kueue, --snapshot and --job, and no trace: would this job be admitted, where, after whose
    preemption, or why not, and from which quota on?
    """
    from windtunnel.cli.whatif_kueue import is_about_one_job, manifests_changed, one_job_result

    if is_about_one_job(asked, trace):
        return one_job_result(asked)
    from windtunnel.cli.machine import trace_data
    from windtunnel.cli.opening import TraceWish, open_wish
    from windtunnel.cli.report_queue import recorded_cluster
    from windtunnel.cli.screen import progress
    from windtunnel.cluster.parse import parse_cluster
    from windtunnel.study.validation import replayed

    asked = manifests_changed(asked)
    wish = TraceWish.of(trace or "", asked, asked["seed"])
    plan = _Plan.of(asked)
    chosen = None if asked["cluster"] is None else parse_cluster(asked["cluster"])
    opened = open_wish(wish)
    spec, why = recorded_cluster(opened, chosen)
    flown, left_out, _ = replayed(opened.jobs)
    with progress("Flying"):
        answer, data = plan.carry_out(opened.with_jobs(flown), spec)
    answer.notes.extend(f"Jobs {reason}, not flown: {n:,}." for reason, n in left_out.items())
    return answer.with_data({"trace": trace_data(opened), **data}, why)


@dataclass(frozen=True)
class _Plan:
    """What was asked for, checked before the trace is read.

    Attributes:
        asked: the options by name.
        nodes: nodes more or fewer, and of which type; None = as they are.
        to_cluster: another cluster; None = the same.
        prices: of GPU hours; None = cost is not asked for.
    """

    asked: dict[str, Any]
    nodes: tuple[int, str | None] | None
    to_cluster: ClusterSpec | None
    prices: Prices | None

    @classmethod
    def of(cls, asked: dict[str, Any]) -> _Plan:
        """Return the plan.

        Raises:
            SpecError: nothing is to change, options contradict each other, or a name is unknown.
        """
        from windtunnel.cli.flying import check_policies
        from windtunnel.cluster.parse import parse_cluster
        from windtunnel.errors import SpecError, quote

        changes = [name for name in _CHANGES if asked[name] is not None]
        inverse = asked["keep_p90_wait"] is not None
        if inverse == bool(changes):
            raise SpecError(
                "whatif",
                "expected either what is to change (--nodes +4, --to-policy sjf, ...) or "
                "--keep-p90-wait TIME.",
            )
        for one, other in (("nodes", "to_cluster"), ("quotas", "to_policy"), ("price", "prices")):
            if asked[one] is not None and asked[other] is not None:
                raise SpecError(
                    f"--{one.replace('_', '-')}",
                    f"expected this or --{other.replace('_', '-')}, not both.",
                )
        for needs, what in (("idle_kill", "telemetry"), ("slowdown", "share")):
            if asked[needs] is not None and asked[what] is None:
                option = f"--{needs.replace('_', '-')}"
                raise SpecError(option, f"needs --{what}; add it.")
        nodes = None
        if asked["nodes"] is not None:
            match = _NODES.fullmatch(asked["nodes"])
            if match is None or not int(match[1]):
                found = quote(asked["nodes"])
                raise SpecError("--nodes", f"found {found}; expected +4, -2 or +4:A100.")
            nodes = int(match[1]), match[2]
        for policy, queueing in (
            (asked["policy"], asked["queueing"]),
            _policy_to(asked),
        ):
            more = {name: asked[name] for name in ("placement", "slowdown")}
            check_policies([policy], queueing=queueing, **more)
        to_cluster = None if asked["to_cluster"] is None else parse_cluster(asked["to_cluster"])
        return cls(asked, nodes, to_cluster, _prices(asked))

    def carry_out(self, trace: Trace, cluster: ClusterSpec) -> tuple[Result, dict[str, Any]]:
        """Return the answer and its data."""
        from windtunnel.cli.whatif_kueue import queues_part
        from windtunnel.report import whatif_report
        from windtunnel.study.changes import with_nodes
        from windtunnel.study.fewest_nodes import fewest_nodes
        from windtunnel.study.whatif import WhatIf

        asked, jobs = self.asked, trace.jobs
        seed = asked["seed"] or 0
        base = {"queueing": asked["queueing"], "placement": asked["placement"], "seed": seed}
        limit = asked["keep_p90_wait"]
        if limit is not None:
            found = fewest_nodes(
                *(jobs, cluster, limit), policy=asked["policy"], **base, incomplete="reject"
            )
            answer = whatif_report.nodes_answer(found, limit, trace, [self._policy_note()])
            return answer, whatif_report.nodes_data(found, limit)
        other = self.to_cluster or cluster
        changes = []
        if self.nodes is not None:
            other = with_nodes(cluster, *self.nodes)
            number, kind = self.nodes
            what = "GPU" if cluster.is_pool else f"{kind} node" if kind else "node"
            what += "s" * (abs(number) != 1)
            changes.append(f"{abs(number):,} {what} {'more' if number > 0 else 'fewer'}")
        if self.to_cluster is not None:
            changes.append(f"the cluster {asked['to_cluster']}")
        after, told, notes = self._other_jobs(trace)
        changes += told
        policy, queueing = self._other_policy(changes)
        loose = {"oversize": "reject", "incomplete": "reject"}
        more = {**base, "queueing": queueing, "slowdown": asked["slowdown"]}
        runs = (
            _flown(jobs, cluster, asked["policy"], {**base, **loose}),
            _flown(after, other, policy, {**more, **loose}),
        )
        what_if = WhatIf(*runs, tuple(changes), asked["blocks"], self.prices, seed)
        answer = whatif_report.whatif_answer(what_if, trace, notes)
        data = whatif_report.whatif_data(what_if)
        if asked["kueue"]:
            part, data["by_cluster_queue"] = queues_part(what_if, asked["policy"], policy)
            answer = replace(answer, parts=[*answer.parts, part])
        return answer, data

    def _policy_note(self) -> str:
        queueing = self.asked["queueing"] or "as the policy has it"
        return f"Policy {self.asked['policy']}, queueing {queueing}."

    def _other_policy(self, changes: list[str]) -> tuple[str, str | None]:
        """Return policy and queueing as they might be; what is different goes to ``changes``."""
        asked = self.asked
        policy, queueing = _policy_to(asked)
        if asked["quotas"] is not None:
            from windtunnel.cli.flying import with_quotas

            (policy,) = with_quotas(["quota"], asked["quotas"])
            changes.append("quotas")
        if len(asked["kueue"]) > 1:
            changes.append(f"the manifests {asked['kueue'][1]}")
        elif asked["to_policy"] is not None:
            changes.append(f"policy {policy}")
        if asked["to_queueing"] is not None:
            changes.append(f"queueing {asked['to_queueing']}")
        return policy, queueing

    def _other_jobs(self, trace: Trace) -> tuple[pa.Table, list[str], list[str]]:
        """Return the jobs as they might be, what is different, and what to tell."""
        from windtunnel.report.format import count, duration, plural
        from windtunnel.study.changes import with_idle_killed, with_limits, with_shared_gpus

        asked, jobs = self.asked, trace.jobs
        changes, notes = [], []
        if asked["idle_kill"] is not None:
            tails = _tails(trace, asked["telemetry"], asked["idle_kill"])
            jobs, hit = with_idle_killed(jobs, tails, asked["idle_kill"])
            changes.append(f"jobs ended after {duration(asked['idle_kill'])} of idleness")
            notes.append(f"The idle rule would have hit {plural(hit, 'job')}.")
        if asked["limits"] is not None:
            jobs = with_limits(jobs, asked["limits"])
            changes.append(f"time limits {asked['limits']:g} times the run times")
            notes.append("Only backfilling (easy, conservative) goes by time limits.")
        if asked["share"] is not None:
            jobs, shared = with_shared_gpus(jobs, asked["share"])
            changes.append(f"{asked['share']:g} of a GPU for jobs of one")
            notes.append(f"Jobs of one GPU that would share it: {count(shared)}.")
            if asked["slowdown"] is None:
                notes.append(
                    "Sharing is taken to cost no speed; --slowdown share=0.9 says it does."
                )
        return jobs, changes, notes


def _policy_to(asked: dict[str, Any]) -> tuple[str, str | None]:
    """Return the policy as it might be, and its rule for the queue; of tier 3 only a rule asked."""
    from windtunnel.policies import resolve_policy
    from windtunnel.sim.contract import rule_of_several

    policy = "quota" if asked["quotas"] is not None else asked["to_policy"] or asked["policy"]
    kept = rule_of_several(asked["queueing"], resolve_policy(policy))
    return policy, asked["to_queueing"] or kept


def _prices(asked: dict[str, Any]) -> Prices | None:
    """Return the prices that were asked for.

    Raises:
        SpecError: the file is wrong.
    """
    if asked["price"] is None and asked["prices"] is None:
        return None
    from windtunnel.characterize.cost import Prices

    file = asked["prices"]
    return Prices(default=asked["price"]) if file is None else Prices.from_toml(file)


def _flown(jobs: pa.Table, cluster: ClusterSpec, policy: str, options: dict[str, Any]) -> Any:
    from windtunnel.study.simulate import simulate

    return simulate(jobs, cluster, policy, **options)


def _tails(trace: Trace, telemetry: str, least: float) -> Any:
    """Return the s that each job was idle to its end, 0 where it was not seen so for ``least``.

    Raises:
        WindtunnelError: the telemetry cannot be read, or tells no busy GPU.
    """
    from windtunnel.characterize.waste import waste
    from windtunnel.cli.report_waste import idle_by

    idle, _ = idle_by(trace, telemetry, None, 0.0)
    return waste(trace.jobs, tail=least, idle=idle).idle_to_end
