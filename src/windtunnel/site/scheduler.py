"""`Scheduler`: what decides who runs next, where and how."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from windtunnel.site.fields import Field, NamedFields, check_fields

#: Rules for the queue that plan with expected ends.
BACKFILLING: tuple[str, ...] = ("conservative", "easy", "easy_sjbf")
#: Rules for the queue: at the first job that does not fit stop, go on past it, or backfill.
QUEUEING: tuple[str, ...] = ("skip", "strict", *BACKFILLING)
#: How jobs may share the GPUs of a node.
SHARING: tuple[str, ...] = ("devices", "pooled")
#: What happens at one instant: all events, then one decision; or one event at a time, a decision
#: after each, arrivals or completions first.
EVENT_ORDERS: tuple[str, ...] = ("batch", "submissions_first", "completions_first")
#: How a policy that preempts makes room: so that a job really fits, or by the old quota walk.
PREEMPTIONS: tuple[str, ...] = ("feasible", "quota_walk")
#: From when a job is in the queue: from when nothing but the queue held it, or from submission.
READY: tuple[str, ...] = ("eligible", "submit")
#: What becomes of a job that cannot be flown.
UNFIT: tuple[str, ...] = ("raise", "reject")
#: Published simulators whose own ways a run can have.
COMPATS: tuple[str, ...] = ("gavel", "morphling", "pai", "pollux", "shockwave")


class Scheduler(msgspec.Struct, metaclass=NamedFields, frozen=True, forbid_unknown_fields=True):
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
            "Who runs next: fifo, sjf, srtf, slurm ... or package.module:name.",
            "NAME",
            kind="object",
            details="All policies, with their options: [policies](policies.md).",
        ),
    ] = "fifo"
    queueing: Annotated[
        str | None,
        Field(
            "At a job that does not fit: strict, skip, easy, easy_sjbf, conservative.",
            "NAME",
            kind="word",
            words=QUEUEING,
            default="the policy's",
            details="strict waits, skip goes on to the next job, the others backfill.",
        ),
    ] = None
    placement: Annotated[
        Any,
        Field(
            "Where jobs run: best_fit, first_fit, spread, fgd ...",
            "NAME",
            kind="name",
            default="best_fit; on a pool, pool",
            details="Options stand behind the name, as in fgd:ties=index:gang=fill. All of them: "
            "[placements](placements.md).",
        ),
    ] = None
    topology_request: Annotated[
        str | None,
        Field(
            "With --placement tree: levels that jobs ask for, as in preferred:rack.",
            "WORDS",
            details="It holds for jobs that say nothing themselves. By GPUs: "
            "slice=rack/16@128,slice=rack/4@32.",
        ),
    ] = None
    sharing: Annotated[
        str | None,
        Field(
            "Jobs share single GPUs of a node, or all as one pool.",
            "devices|pooled",
            kind="word",
            words=SHARING,
            default="devices, where needed",
            details="Devices are needed where jobs ask for parts of GPUs, or for cores or memory "
            "that constrain, and by most placements; elsewhere jobs hold whole GPUs of nodes.",
        ),
    ] = None
    bind_types: Annotated[
        Any,
        Field(
            "GPU types that bind jobs that name them: V100,T4; all; none.",
            "TYPES",
            kind="names",
            default="all",
        ),
    ] = None
    estimates: Annotated[
        str | None,
        Field(
            "Run times that backfilling goes by: recorded, perfect, cart ...",
            "SOURCE",
            default="the policy's",
            details="recorded is the time that the job asked for; cart is a predictor, of which "
            "there are more: [prediction](../guides/prediction.md).",
        ),
    ] = None
    preemption: Annotated[
        str,
        Field(
            "feasible: jobs are stopped only for one that then starts; or quota_walk.",
            "RULE",
            kind="word",
            words=PREEMPTIONS,
            details="quota_walk gives out the cluster's GPUs by rank, wherever they are; it goes "
            "with queueing strict and skip.",
        ),
    ] = "feasible"
    blocking_limits: Annotated[
        bool,
        Field(
            "With --quotas: a job that waits for quota holds up all behind it.",
            kind="flag",
            details="Otherwise it is passed over, and blocks nobody.",
        ),
    ] = False
    decide_every: Annotated[
        Any,
        Field(
            "Decide only at multiples of this time.",
            "TIME",
            kind="time",
            unit="s",
            details="Otherwise whenever something happens.",
        ),
    ] = None
    save_time: Annotated[
        Any,
        Field(
            "Time that saving a preempted job takes; by GPUs: 1=7/2=30/9=60.",
            "TIME",
            kind="cost",
            unit="s",
            details="The job pays it when it goes on. By workload or template: bert=20/*=5.",
        ),
    ] = 0.0
    restore_time: Annotated[
        Any,
        Field(
            "Time that restoring a preempted job takes.",
            "TIME",
            kind="cost",
            unit="s",
            default="the trace's, else 0 s",
            details="The job pays it when it goes on, after the time to save, and holds its GPUs "
            "meanwhile. It goes by GPUs, workload or template, too. The trace may say it of each "
            "job ([restore_time](jobs-table.md)).",
        ),
    ] = None
    penalty: Annotated[
        Any,
        Field(
            "Elastic policies: the cost of each launch or change.",
            "TIME",
            kind="cost",
            unit="s",
            default="the trace's, else 260 s",
            details="The trace may say it of each job ([restore_time](jobs-table.md)); in Python "
            "also by model.",
        ),
    ] = None
    models: Annotated[
        Any,
        Field(
            "Models of elastic jobs.",
            "DIR",
            kind="object",
            default="published ones",
            details="A folder of them, as throughput fit writes them, each by the name that jobs "
            "have as template; in Python also models by name.",
        ),
    ] = None
    throughputs: Annotated[
        Any,
        Field(
            "Measured speeds for gavel, shockwave or pollux.",
            "FILE.json",
            kind="object",
            default="published ones",
            details="For pollux a folder. The published ones have no pairs of jobs.",
        ),
    ] = None
    replay: Annotated[
        Any,
        Field(
            "Fly a schedule: round,job,gpus or job,start,end,gpus.",
            "FILE.csv",
            kind="object",
            details="Behind one of rounds stands their clock, as in "
            "FILE.csv:length=120:stop_time=2.5:each_stop=0.5:delay=148, or FILE.csv:fit=jobs.csv "
            "(job,jct).",
        ),
    ] = None
    shift: Annotated[
        Any,
        Field(
            "Let jobs wait for less carbon or lower prices, as in max_delay=12h; or FILE.toml.",
            "WORDS",
            kind="object",
            details="More words: interruptible, series=FILE.csv ...: [energy of a "
            "cluster](../guides/cluster_energy.md).",
        ),
    ] = None
    node_sleep: Annotated[
        Any,
        Field(
            "Idle nodes go off: earth, venus ..., or FILE.toml.",
            "RULE",
            kind="object",
            details="The rules venus, earth, saturn and uranus are Helios'; options stand behind "
            "them, as in earth,wake_time=5m,buffer=3.",
        ),
    ] = None
    compat: Annotated[
        str | None,
        Field(
            "A published simulator's own ways: " + ", ".join(COMPATS) + ".",
            "NAME",
            kind="word",
            words=COMPATS,
            details="They are there to compare with what it printed.",
        ),
    ] = None
    events: Annotated[
        str,
        Field(
            "Events of one instant: batch, submissions_first or completions_first.",
            "ORDER",
            section="conditions",
            kind="word",
            words=EVENT_ORDERS,
            details="batch takes all events of the instant and then decides once; the others take "
            "one by one and decide after each.",
        ),
    ] = "batch"
    ready: Annotated[
        str | None,
        Field(
            "Jobs are queued once eligible, or at submission.",
            "eligible|submit",
            section="conditions",
            kind="word",
            words=READY,
            details="Once eligible where the log says when that was (column eligible_time): begin "
            "times, dependencies and holds are not the scheduler's doing. Waits count from then, "
            "too.",
        ),
    ] = None
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
            "A job without submit time, duration or GPUs: likewise.",
            "raise|reject",
            section="conditions",
            kind="word",
            words=UNFIT,
            details="raise refuses the run, reject the job.",
        ),
    ] = "raise"

    def __post_init__(self) -> None:
        """Check the fields.

        Raises:
            SpecError: a value is wrong; names the field.
        """
        check_fields(self)
