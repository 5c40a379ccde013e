"""Partitions, QOS and accounts that jobs name and their site does not have, and the reverse."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windtunnel.errors import unused_names

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from windtunnel.site.slurm import SlurmSite


def partitions_of(text: str) -> tuple[str, ...]:
    """Return the partitions that a job names, in its order.

    >>> partitions_of("gpu,cpu")
    ('gpu', 'cpu')
    """
    return tuple(name for name in text.split(",") if name)


def unused_site_names(site: SlurmSite, jobs: pa.Table) -> list[str]:
    """Return what to note of names that a site or its jobs have, and the other does not.

    Args:
        site: what is there. QOS and accounts are compared where it lists any, and jobs name any.
        jobs: a jobs table (`windtunnel.schema`); the account of a job without one is its ``vc``.
    """
    notes = []
    for kind, named, there, spared in _kinds(site, jobs):
        notes += unused_names("Jobs name", kind, named, there, where="the site")
        notes += unused_names("The site names", kind, there - spared, named, where="the trace")
    return notes


def _kinds(site: SlurmSite, jobs: pa.Table) -> Iterator[tuple[str, set[str], set[str], set[str]]]:
    """Yield kinds of names: those of the jobs, the site's, and which of these no job need name."""
    texts = _texts(jobs, "partition")
    named = {name for text in texts for name in partitions_of(text)}
    there = {part.name for part in site.partitions}
    yield "partition", named, there, {site.default_partition} if "" in texts else set()
    named = _texts(jobs, "qos") - {""}
    if site.qos and named:
        implied = {part.qos for part in site.partitions}
        implied |= {one.default_qos for one in site.associations} | {"normal"}
        yield "qos", named, {qos.name for qos in site.qos} | {"normal"}, implied
    named = _accounts(jobs) - {""}
    if site.associations and named:
        above = {one.parent for one in site.associations if not one.user} | {"root"}
        yield "account", named, {one.account for one in site.associations}, above


def _texts(jobs: pa.Table, column: str) -> set[str]:
    """Return the texts of a column; "" = a job has none there."""
    if column not in jobs.column_names:
        return {""}
    return {text or "" for text in jobs[column].unique().to_pylist()}


def _accounts(jobs: pa.Table) -> set[str]:
    """Return the accounts that jobs are charged to; "" = a job has none."""
    names = [name for name in ("account", "vc") if name in jobs.column_names]
    rows = jobs.select(names).group_by(names).aggregate([]).to_pylist() if names else []
    return {row.get("account") or row.get("vc") or "" for row in rows}
