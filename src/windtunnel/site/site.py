"""`Site`: what the cluster is and what happens to it, whoever schedules."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from windtunnel.site.fields import Field, NamedFields, check_fields

#: What of a node constrains.
RESOURCES: tuple[str, ...] = ("all", "gpus")


class Site(
    msgspec.Struct, metaclass=NamedFields, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """What the cluster is and what happens to it, whoever schedules.

    The fields tell what they are (`Field`); docs/reference/options.md lists them.

    Raises:
        SpecError: a value is wrong; names the field.

    >>> Site(cluster="64x8:A100", slowdown="spread=0.42").resources
    'all'
    """

    cluster: Annotated[
        Any,
        Field(
            "64x8:A100, 8x8:A100,4x4:T4, pool:512, FILE.toml or a published name.",
            "SPEC",
            section="cluster",
            kind="object",
            default="the trace's own",
            details="Also GPUs by type, v100:8,k80:24. Only some traces have a cluster of their "
            "own. All forms: [clusters](clusters.md).",
        ),
    ] = None
    slurm_conf: Annotated[
        str | None,
        Field(
            "Slurm's own files: nodes, limits and settings.",
            "DIR",
            section="cluster",
            details="The folder of slurm.conf; gres.conf, topology.conf, \\*.sacctmgr and \\*.res "
            "beside it are read, too. Partitions, limits and settings are those of policy slurm.",
        ),
    ] = None
    slurm: Annotated[
        Any,
        Field(
            "The same inside a site file: a table with conf (slurm.conf's lines), accounts "
            "(sacctmgr's commands) and reservations (as scontrol show reservation prints them), as "
            "windtunnel learn writes it.",
            section="cluster",
            kind="object",
        ),
    ] = None
    topology: Annotated[
        Any,
        Field(
            "Levels above nodes: block=72,rack=18, or Slurm's topology.conf.",
            "LEVELS",
            section="cluster",
            kind="object",
            default="the cluster's own",
            details="From the top down, each level with the nodes of one of its domains.",
        ),
    ] = None
    quotas: Annotated[
        Any,
        Field(
            "Quotas of GPUs that virtual clusters lend each other, under any policy.",
            "FILE.toml",
            section="cluster",
            kind="object",
            details="A job starts only where its virtual cluster has the quota; one that has not "
            "is passed over. Policy quota goes by them in its own order: [quotas]"
            "(../guides/quotas.md).",
        ),
    ] = None
    resources: Annotated[
        str,
        Field(
            "Cores and memory constrain, too, or GPUs alone.",
            "all|gpus",
            section="cluster",
            kind="word",
            words=RESOURCES,
            details="Cores and memory do where both cluster and job state them.",
        ),
    ] = "all"
    slowdown: Annotated[
        Any,
        Field(
            "Slower where spread or beside others: spread=0.42,share=0.9 ..., or FILE.toml.",
            "MODEL",
            section="cluster",
            kind="object",
            details="More words: rack=0.8, cpu=0.28, traffic=5, link.host=12.5; see "
            "[slow-downs](slowdown.md).",
        ),
    ] = None
    disruptions: Annotated[
        Any,
        Field(
            "Failures, maintenance, reservations: FILE.toml, mtbf:30d/mttr:4h, rsc, llama3.",
            "SPEC",
            section="cluster",
            kind="object",
            details="A TOML file has changes of capacity and checkpoints, too; random failures "
            "take more words, as in mtbf:30d/mttr:4h/checkpoint:1h; rsc and llama3 are published "
            "ones; a JSON file is a recording of spot nodes.",
        ),
    ] = None
    power: Annotated[
        Any,
        Field(
            "Account for energy by this model of power.",
            "FILE.toml",
            section="cluster",
            kind="object",
            details="It has what GPUs, hosts and the building draw: [energy of a "
            "cluster](../guides/cluster_energy.md).",
        ),
    ] = None
    power_cap: Annotated[
        Any,
        Field(
            "With --power: never more: 450kW, or CSV (time, W).",
            "W|FILE.csv",
            section="cluster",
            kind="object",
            unit="W",
            details="With 450kW,limits=uniform (or optimised) jobs are slowed down to fit under "
            "it: [energy of a cluster](../guides/cluster_energy.md).",
        ),
    ] = None
    carbon: Annotated[
        Any,
        Field(
            "With --power: gCO2eq per kWh, or CSV (time, value).",
            "G|FILE.csv",
            section="cluster",
            kind="object",
            unit="gCO2eq/kWh",
        ),
    ] = None
    tariff: Annotated[
        Any,
        Field(
            "With --power: price of a kWh, or CSV (time, value).",
            "PRICE|FILE.csv",
            section="cluster",
            kind="object",
            unit="money/kWh",
        ),
    ] = None
    arrivals: Annotated[
        str | None,
        Field(
            "300/60 = 300 jobs every 60 s; closed = users wait for their jobs.",
            "N/SECONDS",
            section="conditions",
            default="as recorded",
            details="The jobs are the same, in their own order. closed: users wait as in the log "
            "(closed:30m: a session ends after 30 minutes without a job). As recorded: whatever "
            "becomes of the jobs.",
        ),
    ] = None

    def __post_init__(self) -> None:
        """Check the fields.

        Raises:
            SpecError: a value is wrong; names the field.
        """
        check_fields(self)
