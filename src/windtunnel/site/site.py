"""`Site`: what the cluster is and what happens to it, whoever schedules."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from windtunnel.site.fields import Field, check_fields

#: What of a node constrains.
RESOURCES: tuple[str, ...] = ("all", "gpus")


class Site(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
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
            "64x8:A100, 8x8:A100,4x4:T4, v100:8,k80:24, pool:512, FILE.toml or a published "
            "cluster's name.",
            "SPEC",
            section="cluster",
            kind="object",
            default="the trace's own, where it is known",
        ),
    ] = None
    slurm_conf: Annotated[
        str | None,
        Field(
            "Slurm's own files (slurm.conf, and beside it gres.conf, topology.conf, *.sacctmgr, "
            "*.res): "
            "the nodes, and for policy slurm partitions, limits and settings.",
            "DIR",
            section="cluster",
            default="none",
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
            default="none",
        ),
    ] = None
    topology: Annotated[
        Any,
        Field(
            "Levels above the nodes: nodes of a domain from the top, or Slurm's topology.conf.",
            "block=72,rack=18|FILE",
            section="cluster",
            kind="object",
            default="the cluster's own",
        ),
    ] = None
    resources: Annotated[
        str,
        Field(
            "Cores and memory constrain where cluster and job state them, or GPUs alone do.",
            "all|gpus",
            section="cluster",
            kind="word",
            words=RESOURCES,
        ),
    ] = "all"
    slowdown: Annotated[
        Any,
        Field(
            "Slower where spread or beside others: FILE.toml, or words such as "
            "spread=0.42,rack=0.8,share=0.9,cpu=0.28,traffic=5,link.host=12.5.",
            "MODEL",
            section="cluster",
            kind="object",
            default="no slower",
        ),
    ] = None
    disruptions: Annotated[
        Any,
        Field(
            "Failures, checkpoints, maintenance, capacity changes, reservations: a TOML file; "
            "random failures: mtbf:30d/mttr:4h/checkpoint:1h; published ones: "
            "rsc, llama3; a recording of spot nodes: a JSON file.",
            "FILE|mtbf:30d/mttr:4h",
            section="cluster",
            kind="object",
        ),
    ] = None
    power: Annotated[
        Any,
        Field(
            "Account for energy: what GPUs, hosts and the building draw.",
            "FILE.toml",
            section="cluster",
            kind="object",
        ),
    ] = None
    power_cap: Annotated[
        Any,
        Field(
            "With --power: never draw more: 450kW, or over time (CSV: time, W); with "
            "limits=uniform or limits=optimised jobs are slowed down to make room.",
            "W|FILE.csv",
            section="cluster",
            kind="object",
        ),
    ] = None
    carbon: Annotated[
        Any,
        Field(
            "With --power: gCO2eq per kWh; one number, or a CSV of time, value.",
            "FILE.csv|G",
            section="cluster",
            kind="object",
        ),
    ] = None
    tariff: Annotated[
        Any,
        Field(
            "With --power: money per kWh, over time (CSV: time, value) or one number.",
            "FILE.csv|PRICE",
            section="cluster",
            kind="object",
        ),
    ] = None
    arrivals: Annotated[
        str | None,
        Field(
            "Other arrivals for the same jobs: 300/60 = 300 every 60 s, in their own order; "
            "closed = users wait for their jobs, as in the log (closed:30m: a session ends after "
            "30 minutes without one).",
            "N/SECONDS|closed",
            section="conditions",
            default="open: as recorded, whatever becomes of the jobs",
        ),
    ] = None

    def __post_init__(self) -> None:
        """Check the fields.

        Raises:
            SpecError: a value is wrong; names the field.
        """
        check_fields(self)
