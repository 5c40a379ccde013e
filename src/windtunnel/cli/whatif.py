"""``windtunnel whatif``: what would change with more nodes, another policy, another rule."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from windtunnel.cli.machine import trace_data
from windtunnel.cli.opening import TraceRequest, open_request
from windtunnel.cli.options import TIME, one_of, option, reading_options, seed_option
from windtunnel.cli.presenting import PAGES, presented
from windtunnel.cli.recorded_site import (
    anyway_option,
    as_recorded,
    as_typed,
    knows_cores,
    refuse_unlike,
    site_options,
)
from windtunnel.cli.report_cost import prices_if_any
from windtunnel.cli.report_log import idle_by
from windtunnel.cli.screen import flights, progress
from windtunnel.cli.whatif_kueue import (
    is_about_one_job,
    manifests_changed,
    one_job_result,
    queues_part,
)
from windtunnel.errors import SpecError, quote
from windtunnel.report.format import count, duration, plural

if TYPE_CHECKING:
    import pyarrow as pa

    from windtunnel.characterize.cost import Prices
    from windtunnel.cluster.spec import ClusterSpec
    from windtunnel.report.result import Result
    from windtunnel.site.conditions import Conditions
    from windtunnel.study.surface import Surface
    from windtunnel.traces.trace import Trace

_NODES = re.compile(r"([+-][0-9]{1,6})(?::(.+))?", re.ASCII)
#: Options that say what is to be different, in the order of the answer.
_CHANGES = (
    *("nodes", "to_cluster", "to_policy", "to_queueing", "quotas", "idle_kill", "limits", "share"),
)


@click.command(short_help="What would change: nodes, policy, quotas, rules, sharing?")
@click.argument("trace", required=False)
@reading_options
@option("--nodes +N|-N[:TYPE]", "So many nodes more or fewer (a pool: GPUs).")
@option("--to-cluster SPEC", "Another cluster: another mix of GPUs.")
@option("--to-policy NAME", "Another policy.")
@option("--to-queueing NAME", "Another head-of-line rule.")
@option("--quotas FILE.toml", "These quotas, under policy quota or --to-policy.")
@option(
    "--kueue DIR|FILE.yaml",
    "Kueue's manifests as they are, policy kueue; given twice: as they might be.",
    multiple=True,
)
@option(
    "--snapshot FILE.yaml",
    "With --kueue and --job, without a trace: the Workloads of a cluster as it stands "
    "(kubectl get workloads -A -o yaml).",
)
@option("--job FILE.yaml", "One more Workload, Job or JobSet, for it.")
@option(
    "--idle-kill", "End jobs that have been idle for so long at their end, by --telemetry.", TIME
)
@option("--telemetry PATH", "DCGM or Prometheus exports, for --idle-kill.")
@option(
    "--limits X",
    "Time limits of X times the true run times, 1 = exact; backfilling goes by them.",
    float,
)
@option(
    "--share X",
    "Jobs of one GPU get this part of it; --slowdown says how much slower sharing is.",
    float,
)
@option("--slowdown MODEL", "With --share, as for `simulate`: share=0.9.")
@option(
    "--keep-p90-wait TIME",
    "The inverse: the fewest nodes whose P90 of the waits is at most this.",
    TIME,
)
@option(
    "--surface AXES",
    "Fly every combination, such as nodes=56..96/4,policy=fifo,sjf,load=0.8..1.2/0.1 (axes: "
    "nodes, load and the fields of `simulate`); --out page.html picks among the runs.",
)
@option(
    "--policy NAME",
    "As it is now.  [default: slurm with --slurm-conf, as the site file says, else fifo]",
)
@option("--queueing NAME", "As it is now.  [default: the policy's own]")
@option("--placement NAME", "As for `simulate`.")
@site_options
@anyway_option
@option(
    "--blocks weeks|users",
    "What intervals are drawn over.",
    one_of("weeks", "users"),
    default="weeks",
)
@option("--price X", "Price of a GPU hour.", click.FloatRange(min=0))
@option("--prices FILE.toml", "Prices by type, as for `report cost`.")
@seed_option("Seed of draws, placement and a synthetic trace.  [default: 0]")
@presented(PAGES, "Write the answer as one page with charts.", metavar="FILE.html")
def whatif(*, trace: str | None, **asked: Any) -> Result:
    """Fly TRACE as things are and as they might be, and tell what changes, with intervals.

    All changes that are named are made together. Waits, completion times, use and cost before and
    after, and as recorded; intervals of the changes by a paired bootstrap over weeks or users, with
    what the replay of things as they are is off by. Where it does not stand for the record
    (`windtunnel validate`), there is no answer without --anyway.

    TRACE is a name (`windtunnel traces`), a file such as an sacct log, or - for standard input.
    With --kueue, --snapshot and --job, and no trace: would this job be admitted, where, after whose
    preemption, or why not, and from which quota on?
    """
    if is_about_one_job(asked, trace):
        return one_job_result(asked)

    asked = manifests_changed(asked)
    request = TraceRequest.of(trace or "", asked, asked["seed"])
    plan = _Plan.of(trace or "", asked)
    opened = open_request(request)
    base, why = as_recorded(opened, plan.base)
    with progress("Flying"):
        answer, data = plan.carry_out(opened, base, is_history=not request.is_synthetic)
    return answer.with_data({"trace": trace_data(opened), **data}, why)


@dataclass(frozen=True)
class _Plan:
    """What was asked for, checked before the trace is read.

    Attributes:
        asked: the options by name.
        base: how things are, as far as is typed.
        nodes: nodes more or fewer, and of which type; None = as they are.
        to_cluster: another cluster.
        prices: of a GPU hour.
        surface: what is varied on top of the changes; None = nothing is.
    """

    asked: dict[str, Any]
    base: Conditions
    nodes: tuple[int, str | None] | None
    to_cluster: ClusterSpec | None
    prices: Prices | None
    surface: Surface | None

    @classmethod
    def of(cls, trace: str, asked: dict[str, Any]) -> _Plan:
        """Return the plan.

        Raises:
            SpecError: nothing is to change, options contradict each other, or a name is unknown.
        """
        from windtunnel.cluster.parse import parse_cluster
        from windtunnel.study.resolving import resolved
        from windtunnel.study.surface import Surface

        changes = [name for name in _CHANGES if asked[name] is not None]
        inverse = asked["keep_p90_wait"] is not None
        surface = None if asked["surface"] is None else Surface.parse(asked["surface"])
        if inverse + (surface is not None) + (bool(changes) and not surface) != 1:
            raise SpecError(
                "whatif",
                "expected either what is to change (--nodes +4, --to-policy sjf, ...), or "
                "--surface AXES, or --keep-p90-wait TIME.",
            )
        _check_pairs(asked, is_one_change=bool(changes) and surface is None)
        nodes = None
        if asked["nodes"] is not None:
            match = _NODES.fullmatch(asked["nodes"])
            if match is None or not int(match[1]):
                found = quote(asked["nodes"])
                raise SpecError("--nodes", f"found {found}; expected +4, -2 or +4:A100.")
            nodes = int(match[1]), match[2]
        now = {name: asked[name] for name in ("policy", "queueing", "placement", "trust")}
        typed = (trace, asked["cluster"], asked["slurm_conf"])
        base = resolved(as_typed(*typed, **now, seed=asked["seed"] or 0))
        to_cluster = None if asked["to_cluster"] is None else parse_cluster(asked["to_cluster"])
        prices = prices_if_any(asked["price"], asked["prices"])
        plan = cls(asked, base, nodes, to_cluster, prices, surface)
        plan.other_conditions(base, [])
        return plan

    def carry_out(
        self, trace: Trace, base: Conditions, *, is_history: bool
    ) -> tuple[Result, dict[str, Any]]:
        """Return the answer and its data.

        Args:
            trace: whose jobs they are.
            base: how things are.
            is_history: the recorded starts are of a real cluster, and not drawn.
        """
        if self.asked["keep_p90_wait"] is not None:
            return self._fewest(trace, base, is_history=is_history)
        from windtunnel.report import whatif_report
        from windtunnel.study.recording import Recording
        from windtunnel.study.simulate import fly
        from windtunnel.study.whatif import WhatIf

        asked, changes = self.asked, list[str]()
        other = self._with_nodes(base, changes)
        other = self.other_conditions(other, changes)
        has_cores = knows_cores(base) and knows_cores(other)
        recording = Recording.of(trace.jobs, with_cpu_jobs=has_cores)
        jobs, job_changes, notes = self._other_jobs(trace.with_jobs(recording.jobs))
        has_record = recording.has_starts and is_history
        before = fly(recording.jobs, base)
        record = recording.outcome(before.cluster) if has_record else None
        now = WhatIf(before, before, (), asked["blocks"], None, base.seed,
                     record, recording)  # fmt: skip
        verdict = now.verdict()
        cautions = refuse_unlike(verdict, anyway=asked["anyway"])
        notes += [f"Jobs {why}, not flown: {n:,}." for why, n in recording.left_out.items()]
        if self.surface is not None:
            return _flown_surface(self.surface, trace, jobs, other, [*cautions, *notes])
        changes += job_changes
        found = replace(now, after=fly(jobs, other), changes=tuple(changes), prices=self.prices)
        answer = whatif_report.whatif_answer(found, trace, notes)
        answer.cautions.extend(cautions)
        data = whatif_report.whatif_data(found)
        if asked["kueue"]:
            policies = [run.scheduler.policy for run in (base, other)]
            part, data["by_cluster_queue"] = queues_part(found, policies)
            answer = replace(answer, parts=[*answer.parts, part])
        return answer, data

    def _fewest(
        self, trace: Trace, base: Conditions, *, is_history: bool
    ) -> tuple[Result, dict[str, Any]]:
        """Return how few nodes keep waits short."""
        from windtunnel.report import whatif_report
        from windtunnel.study.fewest_nodes import fewest_nodes
        from windtunnel.study.recording import Recording

        limit = self.asked["keep_p90_wait"]
        recording = Recording.of(trace.jobs, with_cpu_jobs=knows_cores(base))
        recording = replace(recording, has_starts=recording.has_starts and is_history)
        found, verdict = fewest_nodes(recording, base, limit, seed=base.seed)
        cautions = refuse_unlike(verdict, anyway=self.asked["anyway"])
        notes = [f"Jobs {why}, not flown: {n:,}." for why, n in recording.left_out.items()]
        answer = whatif_report.nodes_answer(found, limit, trace, [_policy_note(base), *notes])
        answer.cautions.extend(cautions)
        return answer, whatif_report.nodes_data(found, limit)

    def _with_nodes(self, base: Conditions, changes: list[str]) -> Conditions:
        """Return conditions with the nodes that are asked for; what is different in ``changes``."""
        from windtunnel.study.changes import conditions_with_nodes
        from windtunnel.study.resolving import cluster_of

        other = base
        if self.to_cluster is not None:
            if knows_cores(base):
                message = (
                    "Slurm's partitions name the site's nodes; expected --nodes, or --to-policy."
                )
                raise SpecError("--to-cluster", message)
            other = other.having(cluster=self.to_cluster)
        if self.nodes is not None:
            number, kind = self.nodes
            other = conditions_with_nodes(other, number, kind)
            what = "GPU" if cluster_of(base).is_pool else f"{kind} node" if kind else "node"
            what += "s" * (abs(number) != 1)
            changes.append(f"{abs(number):,} {what} {'more' if number > 0 else 'fewer'}")
        if self.to_cluster is not None:
            changes.append(f"the cluster {self.asked['to_cluster']}")
        return other

    def other_conditions(self, other: Conditions, changes: list[str]) -> Conditions:
        """Return conditions as they might be; what is different goes to ``changes``.

        Raises:
            SpecError, PolicyError: a name is unknown, or two do not go together.
        """
        from windtunnel.policies import resolve_policy
        from windtunnel.sim.contract import rule_of_several
        from windtunnel.study.resolving import resolved

        asked, fields = self.asked, dict[str, Any]()
        name = asked["to_policy"]
        if asked["quotas"] is not None:
            name = name or "quota"
            changes.append("quotas")
        if name is not None:
            policy = resolve_policy(name)
            kept = rule_of_several(other.scheduler.queueing, policy)
            fields = {"policy": policy, "queueing": kept}
            fields |= {} if asked["quotas"] is None else {"quotas": asked["quotas"]}
        if len(asked["kueue"]) > 1:
            changes.append(f"the manifests {asked['kueue'][1]}")
        elif asked["to_policy"] is not None:
            changes.append(f"policy {name}")
        if asked["to_queueing"] is not None:
            fields["queueing"] = asked["to_queueing"]
            changes.append(f"queueing {asked['to_queueing']}")
        if asked["slowdown"] is not None:
            fields["slowdown"] = asked["slowdown"]
        return resolved(other.having(**fields)) if fields else other

    def _other_jobs(self, trace: Trace) -> tuple[pa.Table, list[str], list[str]]:
        """Return the jobs as they might be, what is different, and what to tell."""
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


def _flown_surface(
    surface: Surface, trace: Trace, jobs: pa.Table, base: Conditions, notes: list[str]
) -> tuple[Result, dict[str, Any]]:
    """Return every run of a surface, and their data."""
    from windtunnel.report.surface_page import surface_answer, surface_data

    with flights("Flying") as (on_start, on_done):
        on_start(0, len(surface.positions))
        points = surface.fly(jobs, base, on_done)
    answer = surface_answer(surface, points, trace, base, notes)
    return answer, surface_data(surface, points)


def _policy_note(base: Conditions) -> str:
    queueing = base.scheduler.queueing or "as the policy has it"
    return f"Policy {base.scheduler.policy.label}, queueing {queueing}."


def _check_pairs(asked: dict[str, Any], *, is_one_change: bool) -> None:
    """Check that no option excludes another, lacks one, or means nothing beside the question."""
    for one, other in (("nodes", "to_cluster"), ("price", "prices")):
        if asked[one] is not None and asked[other] is not None:
            message = f"expected this or --{other.replace('_', '-')}, not both."
            raise SpecError(f"--{one}", message)
    needed = ("idle-kill", "telemetry"), ("telemetry", "idle-kill"), ("slowdown", "share")
    for one, other in needed:
        if asked[one.replace("-", "_")] is not None and asked[other.replace("-", "_")] is None:
            raise SpecError(f"--{one}", f"needs --{other}; add it.")
    for name, default in (("price", None), ("prices", None), ("blocks", "weeks")):
        if not is_one_change and asked[name] != default:
            message = "is for a change that is named, such as --nodes +4; leave it out."
            raise SpecError(f"--{name}", message)


def _tails(trace: Trace, telemetry: str, least: float) -> Any:
    """Return the s that each job was idle to its end, 0 where it was not seen so for ``least``.

    Raises:
        WindtunnelError: the telemetry cannot be read, or tells no busy GPU.
    """
    from windtunnel.characterize.waste import waste

    idle, _ = idle_by(trace, telemetry, None, 0.0)
    return waste(trace.jobs, tail=least, idle=idle).idle_to_end
