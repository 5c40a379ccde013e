"""`Scheduler`: what decides who runs next, where and how."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from windtunnel.site.fields import Field, check_fields

#: How jobs may share the GPUs of a node.
SHARING: tuple[str, ...] = ("devices", "pooled")
#: What happens at one instant: all events, then one decision; or one event at a time, a decision
#: after each, arrivals or completions first.
EVENT_ORDERS: tuple[str, ...] = ("batch", "submissions_first", "completions_first")
#: How a policy that preempts makes room: so that a job really fits, or by the old quota walk.
PREEMPTIONS: tuple[str, ...] = ("feasible", "quota_walk")
#: What becomes of a job that cannot be flown.
UNFIT: tuple[str, ...] = ("raise", "reject")
#: Published simulators whose own ways a run can have.
COMPATS: tuple[str, ...] = ("gavel", "morphling", "pai", "pollux", "shockwave")


class Scheduler(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What decides who runs next, where and how.

    The fields tell what they are (`Field`); docs/reference/options.md lists them.

    Raises:
        SpecError: a value is wrong; names the field.

    >>> Scheduler("srtf", queueing="easy", save_time="1=7/2=30").preemption
    'feasible'
    """

    policy: Annotated[
        Any,
        Field(
            "fifo, sjf, sjf-preemptive, srtf, priority, priority-preemptive, package.module:name "
            "...",
            "NAME",
            kind="object",
        ),
    ] = "fifo"
    queueing: Annotated[
        str | None,
        Field(
            "At a job that does not fit: strict waits, skip goes on to the next; easy, easy_sjbf "
            "and conservative backfill.",
            "NAME",
            default="the policy's own",
        ),
    ] = None
    placement: Annotated[
        Any,
        Field(
            "best_fit, spread, pool, first_fit, fgd, ...; with options, as in "
            "fgd:ties=index:gang=fill.",
            "NAME",
            kind="name",
            default="best_fit; on a pool, pool",
        ),
    ] = None
    topology_request: Annotated[
        str | None,
        Field(
            "With --placement tree: what jobs ask of the levels that say nothing themselves, as in "
            "preferred:rack, or by GPUs: slice=rack/16@128,slice=rack/4@32.",
            "WORDS",
            default="nothing",
        ),
    ] = None
    sharing: Annotated[
        str | None,
        Field(
            "Jobs share single GPUs of a node, or its GPUs are one pool.",
            "devices|pooled",
            kind="word",
            words=SHARING,
            default="devices, where anything needs them",
        ),
    ] = None
    bind_types: Annotated[
        Any,
        Field(
            "GPU types that bind the jobs that name them: V100,T4; all; or none.",
            "TYPES",
            kind="names",
            default="all",
        ),
    ] = None
    estimates: Annotated[
        str | None,
        Field(
            "What backfilling expects a job to take: recorded (asked for), perfect, or a predictor "
            "such as cart.",
            "SOURCE",
            default="the policy's own",
        ),
    ] = None
    preemption: Annotated[
        str,
        Field(
            "How a policy that preempts makes room: it stops jobs only for one that then starts, "
            "or gives out the cluster's GPUs by rank, wherever they are (strict, skip).",
            "feasible|quota_walk",
            kind="word",
            words=PREEMPTIONS,
        ),
    ] = "feasible"
    decide_every: Annotated[
        Any,
        Field(
            "Decide at multiples of this time only.",
            "TIME",
            kind="time",
            default="at every event",
        ),
    ] = None
    save_time: Annotated[
        Any,
        Field(
            "What a preempted job needs to save its state, paid when it goes on: a time, or by "
            "GPUs, as in 1=7/2=30/9=60, or by workload or template, as in bert=20/*=5.",
            "TIME|WORDS",
            kind="cost",
        ),
    ] = 0.0
    restore_time: Annotated[
        Any,
        Field(
            "What it needs to restore it, paid then, too; it holds its GPUs meanwhile.",
            "TIME|WORDS",
            kind="cost",
            default="what the trace says of its jobs; else 0",
        ),
    ] = None
    penalty: Annotated[
        Any,
        Field(
            "Elastic policies: what each launch or change of a job costs; in Python also by model.",
            "TIME",
            kind="cost",
            default="what the trace says of its jobs; else 260",
        ),
    ] = None
    models: Annotated[
        Any,
        Field(
            "Elastic policies: a folder of throughput models, as throughput fit writes, by the "
            "name that jobs have as template; in Python also models by name.",
            "DIR",
            kind="object",
            default="the published ones",
        ),
    ] = None
    throughputs: Annotated[
        Any,
        Field(
            "Policies gavel:..., shockwave:..., pollux:...: measured speeds; of the last a folder.",
            "FILE.json",
            kind="object",
            default="the published ones, without pairs",
        ),
    ] = None
    replay: Annotated[
        Any,
        Field(
            "Fly a given schedule: FILE.csv of round,job,gpus or job,start,end,gpus. Behind one of "
            "rounds their clock, as in FILE.csv:length=120:stop_time=2.5:each_stop=0.5:delay=148, "
            "or FILE.csv:fit=jobs.csv (job,jct).",
            "FILE.csv",
            kind="object",
        ),
    ] = None
    shift: Annotated[
        Any,
        Field(
            "Let jobs wait for times of less carbon, or lower prices: max_delay=12h, with "
            "interruptible, series=FILE.csv ...; or FILE.toml.",
            "WORDS",
            kind="object",
        ),
    ] = None
    node_sleep: Annotated[
        Any,
        Field(
            "Power idle nodes off: venus, earth, saturn or uranus (Helios' rules), with options, "
            "as in earth,wake_time=5m,buffer=3; or FILE.toml.",
            "RULE",
            kind="object",
        ),
    ] = None
    compat: Annotated[
        str | None,
        Field(
            "A published simulator's own ways, to compare with what it printed.",
            "|".join(COMPATS),
            kind="word",
            words=COMPATS,
        ),
    ] = None
    events: Annotated[
        str,
        Field(
            "Events of one instant: batch, or one by one, submissions_first or completions_first.",
            "ORDER",
            section="conditions",
            kind="word",
            words=EVENT_ORDERS,
        ),
    ] = "batch"
    oversize: Annotated[
        str,
        Field(
            "A job larger than the cluster: refuse the run, or the job.",
            "raise|reject",
            section="conditions",
            kind="word",
            words=UNFIT,
        ),
    ] = "raise"
    incomplete: Annotated[
        str,
        Field(
            "A job without submit time, duration or GPUs: refuse the run, or the job.",
            "raise|reject",
            section="conditions",
            kind="word",
            words=UNFIT,
        ),
    ] = "raise"

    def __post_init__(self) -> None:
        """Check the fields.

        Raises:
            SpecError: a value is wrong; names the field.
        """
        check_fields(self)
