"""A site that Slurm schedules: its nodes, partitions, QOS, associations, reservations, settings.

Names are Slurm's own (slurm.conf(5), sacctmgr(1)); units are seconds and MB, and None is "no
limit". `windtunnel.site.slurm_conf` and `windtunnel.site.sacctmgr` read it from a site's files.
"""

from __future__ import annotations

import msgspec


class SlurmNode(msgspec.Struct, frozen=True):
    """A node.

    Attributes:
        cpus: processors, as Slurm counts them.
        memory: MB.
        gpus: GPUs by type, lower case; "" where none is given.
        weight: what Slurm would rather not use is heavier.
        features: what jobs may ask for (``--constraint``).
        state: IDLE, DOWN, DRAIN, ...
    """

    name: str
    cpus: int = 1
    memory: int = 1
    gpus: dict[str, int] = {}
    weight: int = 1
    features: frozenset[str] = frozenset()
    state: str = "IDLE"


class SlurmPartition(msgspec.Struct, frozen=True):
    """A partition.

    Attributes:
        nodes: their names, in the order of the cluster.
        max_time, default_time: limits of jobs, s.
        tier: jobs of a higher one come first (``PriorityTier``).
        job_factor: the partition's part in the priority (``PriorityJobFactor``).
        exclusive: nodes are given whole (``OverSubscribe=EXCLUSIVE``).
        least_loaded: nodes with most free processors first (``LLN``).
        memory_per_node, memory_per_cpu: what jobs get that say nothing, MB.
        grace: seconds between the notice of preemption and the end.
        allowed_accounts, allowed_qos: whose jobs may run here; None = all but those denied.
        denied_accounts, denied_qos: of no consequence where others are allowed by name.
    """

    name: str
    nodes: tuple[str, ...]
    max_time: int | None = None
    default_time: int | None = None
    min_nodes: int = 0
    max_nodes: int | None = None
    tier: int = 1
    job_factor: int = 1
    exclusive: bool = False
    least_loaded: bool = False
    memory_per_node: int | None = None
    memory_per_cpu: int | None = None
    over_time_limit: int | None = None
    preempt_mode: str = ""
    grace: int = 0
    qos: str = ""
    allowed_accounts: frozenset[str] | None = None
    denied_accounts: frozenset[str] = frozenset()
    allowed_qos: frozenset[str] | None = None
    denied_qos: frozenset[str] = frozenset()
    is_default: bool = False
    is_up: bool = True


class SlurmBounds(msgspec.Struct, frozen=True):
    """Limits of a QOS or an association; TRES are ``cpu``, ``mem`` (MB), ``node``, ``gpu``.

    Attributes:
        group: of all that run at once (``GrpTRES``).
        group_minutes: of all that ever ran, decayed (``GrpTRESMins``).
        group_run_minutes: of what those that run may still use (``GrpTRESRunMins``).
        job: of each job (``MaxTRES``).
        user, account: of all jobs of a user or account that run at once (``MaxTRESPU``, ``..PA``).
        wall: s of each job (``MaxWall``).
    """

    group: dict[str, int] = {}
    group_minutes: dict[str, int] = {}
    group_run_minutes: dict[str, int] = {}
    job: dict[str, int] = {}
    user: dict[str, int] = {}
    account: dict[str, int] = {}
    group_jobs: int | None = None
    group_submit: int | None = None
    jobs: int | None = None
    submit: int | None = None
    user_jobs: int | None = None
    user_submit: int | None = None
    account_jobs: int | None = None
    account_submit: int | None = None
    wall: int | None = None


class SlurmQos(msgspec.Struct, frozen=True):
    """A quality of service.

    Attributes:
        preempts: the QOS whose jobs it may take the place of.
        grace: seconds between the notice of preemption and the end.
        exempt: s for which its jobs run before they may be preempted; None = the cluster's.
        flags: as sacctmgr prints them: DenyOnLimit, OverPartQOS, NoDecay ...
    """

    name: str
    priority: int = 0
    preempts: frozenset[str] = frozenset()
    preempt_mode: str = ""
    grace: int = 0
    exempt: int | None = None
    usage_factor: float = 1.0
    flags: frozenset[str] = frozenset()
    bounds: SlurmBounds = SlurmBounds()


class SlurmAssociation(msgspec.Struct, frozen=True):
    """An account (user is empty), or a user in one.

    Attributes:
        parent: of an account, the one above it; empty for root.
        shares: raw shares; -1 = those of the parent (``Fairshare=parent``).
    """

    account: str
    user: str = ""
    partition: str = ""
    parent: str = ""
    shares: int = 1
    priority: int = 0
    qos: tuple[str, ...] = ()
    default_qos: str = ""
    bounds: SlurmBounds = SlurmBounds()


class SlurmReservation(msgspec.Struct, frozen=True):
    """An advance reservation of whole nodes.

    Attributes:
        start, end: s.
        users, accounts: who may use it.
        flags: MAINT, FLEX, IGNORE_JOBS ...
        made: when it was made, s.
        is_dated: its times are seconds since 1970 on the site's clock, and not on a trace's.
    """

    name: str
    nodes: tuple[str, ...]
    start: float
    end: float
    users: frozenset[str] = frozenset()
    accounts: frozenset[str] = frozenset()
    flags: frozenset[str] = frozenset()
    made: float = float("-inf")
    is_dated: bool = False


class SlurmPriority(msgspec.Struct, frozen=True):
    """How priorities are worked out (``PriorityType`` and what goes with it).

    Attributes:
        multifactor: by factors and weights, and not by order of submission.
        period: s between two calculations.
        half_life: s in which usage decays to a half; 0 = it does not.
        max_age: s after which the age counts in full.
        age, fair_share, job_size, partition, qos, assoc: the weights.
        flags: NO_FAIR_TREE, SMALL_RELATIVE_TO_TIME, ACCRUE_ALWAYS ...
    """

    multifactor: bool = False
    period: int = 300
    half_life: int = 7 * 86400
    max_age: int = 7 * 86400
    age: int = 0
    fair_share: int = 0
    job_size: int = 0
    partition: int = 0
    qos: int = 0
    assoc: int = 0
    tres: dict[str, float] = {}
    favor_small: bool = False
    dampening: int = 1
    flags: frozenset[str] = frozenset()


class SlurmSettings(msgspec.Struct, frozen=True):
    """What slurm.conf says of scheduling.

    Attributes:
        backfill: there is a backfill thread (``sched/backfill``).
        scheduler: ``SchedulerParameters``, as they stand there.
        select: ``SelectTypeParameters``, upper case.
        tree: nodes are chosen by switches (``topology/tree``).
        enforce: ``AccountingStorageEnforce``, lower case.
        preempt: ``qos`` or ``partition_prio``; "" = nobody is preempted.
        preempt_parameters: ``PreemptParameters``, lower case.
        preempt_exempt: s for which jobs run before they may be preempted.
        requeues: preempted and failed jobs run again (``JobRequeue``).
        message_timeout: s; beyond ``KillWait``, a job waits for so long for those it preempts.
        over_time_limit: s beyond their limit that jobs may run; None = for ever.
        licenses: how many there are of each (``Licenses``).
    """

    backfill: bool = True
    scheduler: dict[str, str] = {}
    select: frozenset[str] = frozenset({"CR_CORE_MEMORY"})
    tree: bool = False
    enforce: frozenset[str] = frozenset()
    preempt: str = ""
    preempt_mode: str = "OFF"
    preempt_parameters: dict[str, str] = {}
    preempt_exempt: int = 0
    requeues: bool = True
    message_timeout: int = 10
    over_time_limit: int | None = 0
    kill_wait: int = 30
    licenses: dict[str, int] = {}
    memory_per_node: int | None = None
    memory_per_cpu: int | None = None
    priority: SlurmPriority = SlurmPriority()


class SlurmSwitch(msgspec.Struct, frozen=True):
    """A switch of ``topology.conf``: leaves have nodes, the others switches."""

    name: str
    nodes: tuple[str, ...] = ()
    switches: tuple[str, ...] = ()


class SlurmSite(msgspec.Struct, frozen=True):
    """All of it; names are unique in each list."""

    nodes: tuple[SlurmNode, ...] = ()
    partitions: tuple[SlurmPartition, ...] = ()
    qos: tuple[SlurmQos, ...] = ()
    associations: tuple[SlurmAssociation, ...] = ()
    reservations: tuple[SlurmReservation, ...] = ()
    switches: tuple[SlurmSwitch, ...] = ()
    settings: SlurmSettings = SlurmSettings()

    @property
    def default_partition(self) -> str:
        """The partition of jobs that name none: the default one, else the first."""
        default = (part for part in self.partitions if part.is_default)
        return next(default, self.partitions[0]).name
