"""Where a log's jobs ran, and what scheduled them: as typed, or by a site file beside the log."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from windtunnel.cli.options import field_option, flag, option, together
from windtunnel.errors import SpecError

if TYPE_CHECKING:
    from windtunnel.cli.options import Command
    from windtunnel.cluster.spec import ClusterSpec
    from windtunnel.site.conditions import Conditions
    from windtunnel.study.verdict import Verdict
    from windtunnel.traces.trace import Trace

#: The site file that is found beside a log; under this name a command notes where.
BESIDE = "site.toml"


#: Add what says where a log's jobs ran.
site_options = together(
    option(
        "--cluster --site SPEC|FILE.toml",
        "Where it ran, as for `simulate`, or a site file (`windtunnel learn`).  "
        f"[default: {BESIDE} beside the log, else the trace's own, else a pool of as many "
        "GPUs as were ever held at once]",
        dest="cluster",
    ),
    option(
        "--slurm-conf DIR",
        "Slurm's own files: its nodes, and its scheduler, policy slurm.  [default: none]",
    ),
    field_option("trust"),
)


def anyway_option(command: Command) -> Command:
    """Add ``--anyway``."""
    return flag(
        "--anyway", "Answer though the replay of things as they are does not stand for the record."
    )(command)


def as_typed(trace: str, cluster: str | None, slurm_conf: str | None, **fields: Any) -> Conditions:
    """Return the conditions of a log, as far as what is typed tells.

    Args:
        trace: TRACE as typed.
        cluster: ``--site``; None = a site file beside the log, where there is one.
        slurm_conf: ``--slurm-conf``.
        fields: of the run, by name; None = as the site file says, or by default.

    Raises:
        SpecError: a file or a value is wrong.
    """
    from windtunnel.site.conditions import Conditions
    from windtunnel.study.site_file import is_site_file, read_site

    if cluster is None and slurm_conf is None:
        cluster = site_beside(trace)
    given = {name: value for name, value in fields.items() if value is not None}
    if slurm_conf is not None:
        given = {"slurm_conf": slurm_conf, "policy": "slurm"} | given
    if cluster is not None and is_site_file(cluster):
        return read_site(cluster, trust=given.get("trust", False)).having(**given)
    return Conditions().having(cluster=cluster, **given)


def site_beside(trace: str) -> str | None:
    """Return the site file beside a log, which answers then tell of; None where there is none.

    Raises:
        SpecError: the file cannot be read, or describes no site.
    """
    from windtunnel.study.site_file import is_site_file
    from windtunnel.traces.trace_name import TraceName

    log = Path(TraceName.parse(trace).base)
    file = log.parent / BESIDE
    if not log.is_file() or not file.is_file():
        return None
    if not is_site_file(file):
        raise SpecError(
            f"{file}: $",
            "found neither [site] nor [scheduler]; expected a site file beside the log, as "
            "windtunnel learn writes it. Name another one with --site, or move this one away.",
        )
    context = click.get_current_context(silent=True)
    if context is not None:
        context.meta[BESIDE] = str(file)
    return str(file)


def as_recorded(trace: Trace, asked: Conditions) -> tuple[Conditions, tuple[str, ...]]:
    """Return the conditions under which a trace was recorded, and what to tell about them.

    Args:
        trace: may know its own cluster.
        asked: as typed, resolved (`windtunnel.study.resolving`).

    Raises:
        SpecError: nothing tells the cluster, and no job held a GPU at a known time; or the site
            has dates, and the trace none.
    """
    from windtunnel.study.changes import on_clock

    about = trace.metadata
    asked = on_clock(asked, about.epoch, about.zone)
    spec, why = recorded_cluster(trace, asked.site.cluster)
    return asked.having(cluster=spec, oversize="reject", incomplete="reject"), why


def recorded_cluster(
    trace: Trace, chosen: ClusterSpec | None
) -> tuple[ClusterSpec, tuple[str, ...]]:
    """Return where a trace's jobs ran, and what to tell about it.

    Args:
        trace: may know its own cluster.
        chosen: the user's; None = not given.

    Raises:
        SpecError: neither says, and no job held a GPU at a known time.
    """
    from windtunnel.study.recording import observed_cluster

    if chosen is not None:
        return chosen, ()
    if trace.cluster is not None:
        return trace.cluster, ()
    seen = observed_cluster(trace.jobs)
    if seen is None:
        raise SpecError.no_cluster(trace.name)
    note = (
        f"The trace does not say how many GPUs there are: taken as {seen.num_gpus:,} in a pool, "
        "the most that were ever held at once. --site gives the real cluster; for a Slurm log "
        "windtunnel learn finds out."
    )
    return seen, (note,)


def with_reasons(trace: Trace, asked: Conditions) -> tuple[Trace, tuple[str, ...]]:
    """Return a trace that says why jobs waited, and what to tell of it, where its Slurm is known.

    Args:
        trace: with reasons of its own, or none.
        asked: as typed, resolved.
    """
    from windtunnel.study.flown_reasons import with_flown_reasons

    if not knows_cores(asked):
        return trace, ()
    jobs, notes = with_flown_reasons(trace.jobs, as_recorded(trace, asked)[0])
    return trace.with_jobs(jobs), notes


def knows_cores(conditions: Conditions) -> bool:
    """Return whether jobs without GPUs are flown, too: the policy counts cores."""
    from windtunnel.policies.slurm.policy import Slurm

    policy = conditions.scheduler.policy
    return isinstance(policy, Slurm) and policy.site is not None


def refuse_unlike(verdict: Verdict | None, *, anyway: bool) -> list[str]:
    """Refuse to answer from a replay that does not stand for the record.

    Args:
        verdict: None = there is no record to judge by.
        anyway: answer all the same, and say so.

    Returns:
        What to mind.

    Raises:
        SpecError: the replay fails, without ``--anyway``.
    """
    from windtunnel.report.validation_report import failure_words

    if verdict is None or verdict.stands:
        return []
    problem = (
        f"the replay of things as they are does not stand for the record: {failure_words(verdict)}"
    )
    if not anyway:
        raise SpecError(
            "whatif",
            f"{problem}. `windtunnel validate` tells more, `windtunnel learn` or --slurm-conf "
            "brings the site's own rules; --anyway answers all the same.",
        )
    return [f"Asked for anyway: {problem}."]
