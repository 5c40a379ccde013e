"""From words to what they stand for: `resolved`, before anything is read or flown."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from windtunnel.cluster.levels import Levels
from windtunnel.cluster.parse import parse_cluster
from windtunnel.cluster.spec import ClusterSpec
from windtunnel.errors import SpecError, quote
from windtunnel.placements import label_of, resolve_placement
from windtunnel.policies import resolve_policy
from windtunnel.policies.quota import Quota
from windtunnel.policies.quotas import Quotas
from windtunnel.sim.contract import checked_queueing, rule_of_several
from windtunnel.sim.disruptions import Disruptions, parse_disruptions
from windtunnel.sim.disruptions.dated import disruptions_of
from windtunnel.sim.own_metrics import METRICS
from windtunnel.sim.slowdown import resolve_slowdown
from windtunnel.site.conditions import Conditions
from windtunnel.site.scheduler import Scheduler
from windtunnel.site.site import Site
from windtunnel.site.slurm_text import site_of_text
from windtunnel.study.predictions import checked_estimates
from windtunnel.study.recording import check_record
from windtunnel.study.resume_costs import read_cost
from windtunnel.study.site_file import is_site_file, read_site

if TYPE_CHECKING:
    from collections.abc import Collection

    from windtunnel.energy.governing import Governing
    from windtunnel.sim.contract import Policy


def conditions_of(site: Any, scheduler: Any = None, **fields: Any) -> Conditions:
    """Return the conditions that a call names.

    Args:
        site: a `Site`, its cluster (a `ClusterSpec` or words), a site file, or None.
        scheduler: a `Scheduler`, its policy, or None: as ``fields`` say, else as the site file
            does, else ``fifo``.
        fields: fields of `Site`, `Scheduler` and `Conditions`, by name; with ``trust`` a site file
            may name code to run.

    Raises:
        UntrustedNameError: a site file names code, and is not trusted.
        SpecError: a field is unknown, given twice or wrong; the nearest name is suggested.
    """
    base = Conditions()
    if is_site_file(site):
        base = read_site(site, trust=fields.get("trust") is True)
        site = base.site
    elif not isinstance(site, Site):
        site = Site(cluster=site)
    if scheduler is not None and "policy" in fields:
        raise SpecError("policy", "is given twice: as the scheduler, and by its name.")
    if not isinstance(scheduler, Scheduler):
        fields |= {} if scheduler is None else {"policy": scheduler}
        scheduler = base.scheduler
    return Conditions(site, scheduler).having(**fields)


def resolved(conditions: Conditions, *, several: bool = False) -> Conditions:
    """Return conditions with every word replaced by what it stands for, all names checked.

    What is resolved stays as it is, so that this costs nothing a second time.

    Args:
        conditions: as given.
        several: they are one scheduler's of several: a rule for the queue is then for those that
            have one.

    Raises:
        SpecError: an unknown name or a wrong value; the nearest is suggested.
        PolicyError: the object given is no policy.
        TraceError: a table of slow-downs cannot be read.
    """
    conditions = with_series(conditions)
    scheduler, site = conditions.scheduler, conditions.site
    policy, cluster = with_slurm(site, resolve_policy(scheduler.policy))
    quotas = _quotas(site.quotas)
    if quotas is not None and isinstance(policy, Quota):
        policy = policy.with_quotas(quotas)
    queueing = rule_of_several(scheduler.queueing, policy) if several else scheduler.queueing
    checked_queueing(queueing, policy, scheduler.preemption)
    checked_estimates(scheduler.estimates, policy)
    resolve_placement(scheduler.placement, ClusterSpec.pool(1))
    for name in ("save_time", "restore_time"):
        read_cost(name, getattr(scheduler, name) or 0.0)
    for name in conditions.metrics or ():
        METRICS.resolve(name)
    governing = governing_of(conditions)
    power = {} if governing is None else governing.given()
    levels_of(site.topology)
    check_record(conditions.record, several=several)
    _check_series(site)
    return conditions.having(
        policy=policy,
        queueing=queueing,
        cluster=parse_cluster(cluster) if isinstance(cluster, str) else cluster,
        slowdown=resolve_slowdown(site.slowdown),
        disruptions=_disruptions(site.disruptions),
        quotas=quotas,
        **power,
    )


def with_series(conditions: Conditions) -> Conditions:
    """Return conditions whose shift goes by ``carbon`` or ``tariff`` where it names no series.

    Raises:
        SpecError: there is a series, and nothing to account for with it.
    """
    site, shift = conditions.site, conditions.scheduler.shift
    given = {"carbon": site.carbon, "tariff": site.tariff}
    series = {name: value for name, value in given.items() if value is not None}
    if not series:
        return conditions
    name, value = next(iter(series.items()))
    if site.power is None and shift is None:
        raise SpecError(name, "needs a model of power (power=, --power FILE.toml)")
    if isinstance(shift, str):
        from windtunnel.energy.power_policies import StartShift

        shift = StartShift.words(shift)
    if isinstance(shift, dict) and not {"series", "rows"} & shift.keys():
        return conditions.having(shift={**shift, "series": value})
    return conditions


def _check_series(site: Site) -> None:
    """Check what energy is accounted with, which is read again where it is."""
    if site.carbon is None and site.tariff is None:
        return
    from windtunnel.energy.series_files import CARBON, TARIFF, parse_series

    for name, of in (("carbon", CARBON), ("tariff", TARIFF)):
        if (value := getattr(site, name)) is not None:
            parse_series(value, of, name=f"--{name}")


def with_slurm(site: Site, policy: Policy) -> tuple[Policy, Any]:
    """Return policy and cluster, as Slurm's files say where neither says more itself.

    Raises:
        TraceError, SpecError: the files cannot be read, or describe no cluster of GPUs.
    """
    if site.slurm_conf is None and site.slurm is None:
        return policy, site.cluster
    if site.slurm_conf is not None and site.slurm is not None:
        raise SpecError("slurm_conf", "the site file describes Slurm itself; give one of the two.")
    from windtunnel.policies.slurm.policy import Slurm
    from windtunnel.policies.slurm.site_of import cluster_of_site, read_site_folder

    folder = site.slurm_conf
    its = site_of_text(site.slurm) if folder is None else read_site_folder(folder)
    if isinstance(policy, Slurm) and policy.site is None:
        policy = Slurm(its)
    name = "site" if folder is None else Path(folder).name
    return policy, cluster_of_site(its, name) if site.cluster is None else site.cluster


def cluster_of(conditions: Conditions) -> ClusterSpec:
    """Return the cluster of resolved conditions.

    Raises:
        SpecError: they name none.
    """
    cluster = conditions.site.cluster
    if isinstance(cluster, ClusterSpec):
        levels = levels_of(conditions.site.topology)
        return cluster if levels is None else cluster.with_levels(levels)
    found = "none" if cluster is None else quote(cluster)
    raise SpecError("cluster", f"found {found}; expected a ClusterSpec or words such as 64x8:A100.")


def governing_of(conditions: Conditions) -> Governing | None:
    """Return the model and policies of power that were asked for; None = none were.

    Raises:
        SpecError, TraceError: one is wrong.
    """
    site, scheduler = conditions.site, conditions.scheduler
    given = (site.power, site.power_cap, scheduler.shift, scheduler.node_sleep)
    if all(one is None for one in given):
        return None
    from windtunnel.energy.governing import Governing  # it brings the readers of traces

    return Governing.of(*given)


def _disruptions(given: Any) -> Disruptions | None:
    """Return what disrupts a run; None = nothing does, and it is a plain one."""
    chosen = parse_disruptions(given) if isinstance(given, str) else given
    if isinstance(chosen, dict):
        chosen = disruptions_of(chosen, "disruptions")
    if chosen is None or (isinstance(chosen, Disruptions) and chosen.is_empty):
        return None
    if not isinstance(chosen, Disruptions):
        raise SpecError("disruptions", f"found {quote(chosen)}; expected a Disruptions or a file.")
    return chosen


def _quotas(given: Any) -> Quotas | None:
    """Return the quotas of virtual clusters that a value stands for; None = there are none.

    Raises:
        SpecError: the file cannot be read, or it is no description of quotas.
    """
    if given is None or isinstance(given, Quotas):
        return given
    if isinstance(given, dict):
        return Quotas.from_mapping(given, source="quotas")
    if not isinstance(given, str | Path):
        raise SpecError("quotas", f"found {quote(given)}; expected a file or a mapping.")
    return Quotas.from_toml(given)


def settings_of(
    conditions: Conditions, governing: Governing | None, without: Collection[str] = ()
) -> dict[str, Any]:
    """Return conditions as plain data, for an outcome's settings.

    Args:
        conditions: what was asked for.
        governing: what was asked for of power, which tells itself.
        without: fields that such runs do not have.
    """
    settings = {**conditions.as_settings(), "placement": label_of(conditions.scheduler.placement)}
    settings |= {} if governing is None else governing.to_mapping()
    return {name: value for name, value in settings.items() if name not in without}


def settings_of_loop(conditions: Conditions, placement: str, engine: str) -> dict[str, Any]:
    """Return the settings of a run in a loop of its own, whose policy decides all; `settings_of`.

    Args:
        conditions: what was asked for.
        placement: what places jobs.
        engine: what the loop is called.
    """
    return {
        **settings_of(conditions, governing_of(conditions), without=("penalty", "models")),
        "queueing": "policy",
        "placement": placement,
        "engine": engine,
        "sharing": None,
        "estimates": None,
    }


_YAML = (".yaml", ".yml")


def levels_of(given: Any) -> Levels | None:
    """Return the levels that a value stands for; None = none were given.

    Args:
        given: ``block=72,rack=18``, a ``.conf`` of Slurm's, a ``.yaml`` file (or a folder) of
            Kueue's with one Topology and its Nodes, or `Levels`.

    Raises:
        SpecError, TraceError: it is not understood.
    """
    if given is None or isinstance(given, Levels):
        return given
    if not isinstance(given, str | Path):
        raise SpecError("topology", f"found {quote(given)}; expected words or a file.")
    path = Path(given)
    if path.suffix == ".conf":
        from windtunnel.site.slurm_levels import read_topology_conf

        return read_topology_conf(path)
    if path.suffix in _YAML or path.is_dir():
        return _of_manifests(path)
    return Levels.parse(str(given))


def _of_manifests(path: Path) -> Levels:
    """Return the levels of Kueue's manifests; the k-th Node is the cluster's k-th."""
    from windtunnel.policies.kueue.manifests import read_manifests

    manifests = read_manifests(path, queues=False)
    if len(manifests.topologies) != 1 or not manifests.nodes:
        message = (
            f"{path}: found {len(manifests.topologies)} Topology and {len(manifests.nodes):,} Node "
            "objects; expected one Topology and its Nodes."
        )
        raise SpecError("topology", message)
    labels = manifests.topologies[0].levels
    names = tuple(label.rpartition("/")[2] for label in labels[:-1])
    paths = []
    for node in manifests.nodes:
        lacking = [label for label in labels[:-1] if label not in node.labels]
        if lacking:
            message = f"{path}: Node {quote(node.name)} has no label {quote(lacking[0])}."
            raise SpecError("topology", message)
        paths.append(tuple(node.labels[label] for label in labels[:-1]))
    return Levels(names, paths=tuple(paths))
