"""`simulate`: one run, from a jobs table and a cluster to an outcome."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windtunnel import schema
from windtunnel.cluster.parse import parse_cluster
from windtunnel.errors import SpecError, quote
from windtunnel.policies import resolve_policy
from windtunnel.policies.gavel.in_rounds import GavelPolicy
from windtunnel.study.compat import check_compat
from windtunnel.study.flight_options import FlightOptions
from windtunnel.study.gavel_rounds import fly_gavel
from windtunnel.study.rigid import fly_rigid

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    import pyarrow as pa

    from windtunnel.cluster.spec import ClusterSpec
    from windtunnel.energy.cluster_power import PowerModel
    from windtunnel.energy.power_policies import NodeSleep, PowerCap, StartShift
    from windtunnel.sim.contract import Policy
    from windtunnel.sim.disruptions import Disruptions
    from windtunnel.sim.outcome import Outcome
    from windtunnel.sim.slowdown import Slowdown
    from windtunnel.study.foresight import Foresight
    from windtunnel.study.resume_costs import ResumeCost

#: Options of runs whose jobs are resized.
ELASTIC: tuple[str, ...] = ("penalty", "models")


def simulate(
    jobs: Any,
    cluster: ClusterSpec | str,
    policy: str | Policy | Any = "fifo",
    *,
    queueing: str | None = None,
    placement: str | Any | None = None,
    sharing: str | None = None,
    resources: str = "all",
    bind_types: Collection[str] | None = None,
    arrivals: str | None = None,
    compat: str | None = None,
    estimates: str | None = None,
    events: str = "batch",
    preemption: str = "feasible",
    decide_every: float | str | None = None,
    engine: str = "auto",
    seed: int = 0,
    save_time: ResumeCost = 0.0,
    restore_time: ResumeCost = 0.0,
    slowdown: Slowdown | str | dict[str, Any] | None = None,
    until: float | None = None,
    oversize: str = "raise",
    incomplete: str = "raise",
    disruptions: Disruptions | dict[str, Any] | str | None = None,
    throughputs: Any = None,
    penalty: float | Mapping[str, float] | None = None,
    models: Mapping[str, Any] | None = None,
    power: PowerModel | dict[str, Any] | str | None = None,
    power_cap: PowerCap | dict[str, Any] | str | float | None = None,
    shift: StartShift | dict[str, Any] | str | None = None,
    node_sleep: NodeSleep | dict[str, Any] | str | None = None,
) -> Outcome:
    """Fly a trace's jobs on a cluster under a policy.

    Args:
        jobs: a jobs table, anything that exports Arrow (polars, pandas, ibis, pyarrow), or a
            mapping column -> array; absent optional columns are null.
        cluster: where to fly them; a string is read as on the command line (``64x8:A100``).
        policy: a built-in name, ``package.module:name``, a `Policy`, or a function (tiers 1-3).
        queueing: ``strict``, ``skip``, or backfilling: ``easy``, ``easy_sjbf``, ``conservative``;
            None = the policy's own default.
        placement: ``best_fit``, ``spread``, ``pool``, ``first_fit``, ``fgd`` ... with options as in
            ``lowest_utilization:gang=fill`` (`windtunnel.placements.scored`), or a function
            ``(node, request) -> number`` (`windtunnel.placements.asked`); None = ``best_fit``, on a
            pool ``pool``.
        sharing: how jobs share the GPUs of a node: ``devices`` (whole GPUs, or a share of one; no
            shares of several put together) or ``pooled`` (a node's GPUs are one pool of
            thousandths); None = ``devices`` where anything needs them modelled: a job asks for part
            of a GPU, cores or memory constrain, or the placement looks at them.
        resources: ``all``: cores and memory constrain where both the cluster and the job state
            them; ``gpus``: they do not.
        bind_types: GPU types that bind the jobs that name them; None = all, () = none.
        arrivals: other submit times: ``300/60`` = 300 jobs every 60 s, in order of their own.
        compat: a published simulator's own ways, for comparing with what it printed: ``pai``
            (`windtunnel.study.compat`), ``gavel`` (`windtunnel.policies.gavel.published`),
            ``morphling`` (`windtunnel.study.morphling_ticks`).
        estimates: what backfilling expects a job to take: ``recorded`` (the requested wall time),
            ``perfect`` (its true duration) or a predictor's name, which predicts each job at its
            submission (`windtunnel.study.foresight`); None = the policy's own default.
        events: what happens at one instant: ``batch`` (all completions, all arrivals, one
            decision), or one at a time with a decision after each, ``submissions_first`` or
            ``completions_first``, as some published simulators do.
        preemption: how a policy that preempts makes room: ``feasible`` (nobody is stopped for a job
            that then does not start) or ``quota_walk`` (the cluster's GPUs are given out by rank as
            a quota, wherever they are; with ``strict`` and ``skip`` only).
        decide_every: seconds, or ``30s``: decisions are delayed to its multiples; None = they are
            made when something happens.
        engine: ``auto`` (the fastest that serves), ``compiled`` or ``reference``.
        seed: seed of everything random; recorded even where nothing is.
        save_time: seconds a preempted job needs to save its state: one number, by its GPUs or by
            what it runs (`windtunnel.study.resume_costs`).
        restore_time: seconds it needs to restore it, likewise. Both are paid together, holding its
            GPUs and making no progress, each time it resumes.
        slowdown: how much slower jobs run where they are spread, or share a GPU or a node's cores:
            a `Slowdown`, its TOML file, its fields as a dict, or words as in
            ``spread=0.42,rack=0.8,cpu=0.28``; None = not at all.
        until: horizon in s since the trace's epoch; None = until every job has finished.
        oversize: a job larger than the cluster: ``raise``, or ``reject`` it into the outcome.
        incomplete: the same for a job without submit time, duration or GPUs.
        disruptions: failures, repair, checkpoints, maintenance, capacity changes, reservations: a
            `Disruptions`, the same as plain data, or as on the command line a ``.toml`` file or
            ``mtbf:30d/mttr:4h``.
        throughputs: measured speeds for Gavel's policies: a file in their layout or a
            `windtunnel.throughput.ThroughputTable`; None = the published ones.
        penalty: of an elastic policy's runs, seconds that each launch or change of a job costs, or
            a mapping from models to them; None = 260 (`windtunnel.study.elastic`).
        models: of those runs, throughput models by the name that jobs have as ``template``; None =
            the published ones (`windtunnel.throughput`).
        power: what the cluster draws: a `windtunnel.energy.PowerModel`, its TOML file or data.
        power_cap: W that the facility never draws more than, over time: a
            `windtunnel.energy.PowerCap`, a number, or words as in ``cap.csv,limits=optimised``.
        shift: jobs wait for times of less carbon or lower prices: a
            `windtunnel.energy.StartShift`, or words as in ``series=ci.csv,max_delay=12h``.
        node_sleep: idle nodes are powered off: a `windtunnel.energy.NodeSleep`, or words as in
            ``earth,wake_time=5m``.

    Returns:
        The outcome; row order = the jobs table's.

    Raises:
        SchemaError: the jobs break the schema, or do not fit the cluster.
        SpecError: an option or name is unknown or out of range.
        TraceError: a table of slow-downs cannot be read.
        PolicyError: the policy is unusable or decided something impossible.

    >>> jobs = {"submit_time": [0, 0, 1], "duration": [30, 10, 25], "num_gpus": [1, 1, 1]}
    >>> simulate(jobs, "pool:1", policy="sjf").metrics()["avg_jct"]
    36.333333333333336
    """
    spec = parse_cluster(cluster) if isinstance(cluster, str) else cluster
    options = FlightOptions(
        queueing=queueing,
        placement=placement,
        sharing=sharing,
        resources=resources,
        bind_types=None if bind_types is None else tuple(bind_types),
        arrivals=arrivals,
        compat=compat,
        estimates=estimates,
        events=events,
        preemption=preemption,
        decide_every=decide_every,
        engine=engine,
        seed=seed,
        save_time=save_time,
        restore_time=restore_time,
        slowdown=slowdown,
        until=until,
        oversize=oversize,
        incomplete=incomplete,
        disruptions=disruptions,
        throughputs=throughputs,
        penalty=penalty,
        models=models,
        power=power,
        power_cap=power_cap,
        shift=shift,
        node_sleep=node_sleep,
    )
    return fly(schema.as_jobs(jobs), spec, resolve_policy(policy), options)


def fly(
    table: pa.Table,
    cluster: ClusterSpec,
    policy: Policy,
    options: FlightOptions,
    foresight: Foresight | None = None,
) -> Outcome:
    """Fly a validated jobs table; what `simulate` and `compare` share.

    Args:
        table: jobs table.
        cluster: where.
        policy: who runs next.
        options: see `simulate`.
        foresight: of this table as it is given (predictors go along the recorded log, not along
            other arrivals) and the options' seed, so that several runs predict once.

    Raises:
        SchemaError, SpecError, TraceError, PolicyError: as `simulate`.
    """
    check_compat(options.compat)
    if isinstance(policy, GavelPolicy):
        _refuse(policy, options, ELASTIC, "only elastic policies resize jobs")
        return fly_gavel(table, cluster, policy, options)
    _refuse(policy, options, ("throughputs",), "only policies gavel:... take them")
    if options.compat == "gavel":
        message = f"only policies gavel:... take it; {quote(policy.label)} is none."
        raise SpecError("compat", message)
    if policy.elastic:
        from windtunnel.study.elastic import fly_elastic

        return fly_elastic(table, cluster, policy, options)
    _refuse(policy, options, ELASTIC, "only elastic policies resize jobs")
    return fly_rigid(table, cluster, policy, options, foresight)


def _refuse(policy: Policy, options: FlightOptions, names: tuple[str, ...], why: str) -> None:
    """Check that nothing was asked for that the policy has no use for.

    Raises:
        SpecError: something was.
    """
    for name in names:
        if getattr(options, name) is not None:
            raise SpecError(name, f"policy {policy.label!r} has no use for it: {why}.")
