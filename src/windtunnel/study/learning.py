"""What a Slurm log tells of its site: nodes, partitions, limits; each with where it comes from.

Read: names of nodes and partitions, GPU types. Inferred: a node has what was ever held on it at
once, nodes of one name and type are alike; a limit that jobs waited for (``Reason``) is the most
that its owner ever held at once. Assumed: all that no line of the log hangs on.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.characterize.recorded import Recorded
from windtunnel.errors import SpecError
from windtunnel.predictors.features import numbers
from windtunnel.schema import as_jobs
from windtunnel.site.host_list import readable_hosts
from windtunnel.site.site import Site
from windtunnel.study.recording import most_at_once
from windtunnel.toml_file import toml_value

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

#: A limit's reason -> whose it is (columns), where it is written, what it counts.
LIMITS: dict[str, tuple[tuple[str, ...], str, str]] = {
    "QOSMaxGRESPerUser": (("qos", "user"), "MaxTRESPU=gres/gpu", "gpus"),
    "QOSMaxCpuPerUserLimit": (("qos", "user"), "MaxTRESPU=cpu", "cpus"),
    "QOSMaxJobsPerUserLimit": (("qos", "user"), "MaxJobsPU", "jobs"),
    "QOSGrpGRES": (("qos",), "GrpTRES=gres/gpu", "gpus"),
    "QOSGrpCpuLimit": (("qos",), "GrpTRES=cpu", "cpus"),
    "QOSGrpJobsLimit": (("qos",), "GrpJobs", "jobs"),
    "MaxGRESPerAccount": (("qos", "account"), "MaxTRESPA=gres/gpu", "gpus"),
    "AssocGrpGRES": (("account",), "GrpTRES=gres/gpu", "gpus"),
    "AssocGrpCpuLimit": (("account",), "GrpTRES=cpu", "cpus"),
    "AssocGrpJobsLimit": (("account",), "GrpJobs", "jobs"),
}
_NAME = re.compile(r"[A-Za-z0-9_.@+-]{1,200}", re.ASCII)
#: Names that mean something else in slurm.conf.
_TAKEN = ("DEFAULT",)
_MINUTE = 60


@dataclass
class Learnt:
    """A site as a log tells it.

    Attributes:
        conf: lines of slurm.conf, each under a comment that says where it comes from.
        accounts: commands of sacctmgr, likewise.
        findings: what was found: ``what``, ``value``, ``source`` (read, inferred, assumed),
            ``evidence``.
        unknown: reasons for waits whose limits the log does not give -> hours waited.
        nameless: jobs of partitions whose names slurm.conf cannot have, which are left out.
    """

    conf: list[str] = field(default_factory=list)
    accounts: list[str] = field(default_factory=list)
    findings: list[dict[str, str]] = field(default_factory=list)
    unknown: dict[str, float] = field(default_factory=dict)
    nameless: int = 0

    def say(self, lines: list[str], line: str, *found: str) -> None:
        """Add a line with where it comes from: what, value, source and evidence."""
        self.findings.append(dict(zip(("what", "value", "source", "evidence"), found, strict=True)))
        lines += [f"# {found[2]}: {found[3]}", line]

    @property
    def slurm(self) -> dict[str, str]:
        """The site as `Site.slurm` takes it: ``conf``, and ``accounts`` where there are any."""
        lines = {"conf": self.conf, "accounts": self.accounts}
        return {key: "\n".join(its) for key, its in lines.items() if its}


@dataclass
class _Log:
    """The columns of a log that tell of its site."""

    jobs: pa.Table
    nodes: list[list[str]]
    start: list[float]
    end: list[float]
    held: dict[str, np.ndarray]

    def texts(self, name: str) -> list[str]:
        """Return a column's words, "" where there is none, or one that Slurm could not have."""
        column = "vc" if name == "account" and "account" not in self.jobs.column_names else name
        if column not in self.jobs.column_names:
            return [""] * self.jobs.num_rows
        words = (str(word or "") for word in self.jobs[column].to_pylist())
        taken = _TAKEN if name == "partition" else ()
        return [word if _is_name(word, taken) else "" for word in words]


def learn(log: Any) -> Site:
    """Return the site that a Slurm log tells of: nodes, partitions, limits.

    Args:
        log: its jobs, as for `windtunnel.simulate`: a `Trace` that `windtunnel.open_trace` read, or
            a jobs table, with ``nodelist`` and ``partition``.

    Returns:
        A site for the policy ``slurm``. Its ``slurm["conf"]`` and ``slurm["accounts"]`` are lines
        of slurm.conf and commands of sacctmgr, under comments that say where each comes from.

    Raises:
        SchemaError: the jobs break the schema.
        SpecError: no job names the nodes that it ran on, or none of them held a GPU.

    >>> jobs = {
    ...     "submit_time": [0, 5],
    ...     "start_time": [0, 9],
    ...     "end_time": [9, 19],
    ...     "num_gpus": [8, 4],
    ...     "duration": [9, 10],
    ...     "nodelist": ["n1", "n[1-2]"],
    ...     "partition": ["gpu", "gpu"],
    ... }
    >>> import windtunnel as wt
    >>> wt.simulate(jobs, wt.learn(jobs), "slurm").cluster.num_gpus
    16
    """
    return Site(slurm=learn_site(as_jobs(log)).slurm)


def learn_site(jobs: pa.Table) -> Learnt:
    """Return what a Slurm log tells of its site.

    Args:
        jobs: its jobs table, with ``nodelist`` and ``partition``.

    Raises:
        SpecError: no job names the nodes that it ran on, or none of them held a GPU.
    """
    log = _log(jobs)
    found = Learnt()
    groups = _nodes(log, found)
    _partitions(log, found, groups)
    _limits(log, found)
    head = [
        *("# assumed: Slurm's defaults", "SchedulerType=sched/backfill"),
        *("SelectTypeParameters=CR_Core", "# assumed: the order of submission"),
        "PriorityType=priority/basic",
    ]
    if found.accounts:
        head.append("AccountingStorageEnforce=limits,qos")
    found.conf = [*head, *found.conf]
    assumed = (
        ("scheduler", "sched/backfill, CR_Core", "the log does not tell; Slurm's defaults"),
        ("priorities", "by submission, one tier", "give --slurm-conf where they are not"),
    )
    for what, value, why in assumed:
        found.findings.append({"what": what, "value": value, "source": "assumed", "evidence": why})
    return found


def _is_name(word: str, taken: tuple[str, ...]) -> bool:
    """Return whether something in slurm.conf may be called so."""
    return _NAME.fullmatch(word) is not None and word.upper() not in taken


def _log(jobs: pa.Table) -> _Log:
    recorded = Recorded.of(jobs)
    known: dict[str, list[str]] = {}
    nodes = []
    has = "nodelist" in jobs.column_names
    for text in jobs["nodelist"].to_pylist() if has else ():
        if text and text not in known:
            names = readable_hosts(text)
            known[text] = [name for name in names if _is_name(name, ("ALL", *_TAKEN))]
        nodes.append(known.get(text or "", []))
    if not any(nodes):
        message = "found no NodeList in the log; write it with sacct --format=...,NodeList,Reason"
        raise SpecError("learn", message + ", or describe the site by --slurm-conf.")
    cpus = np.nan_to_num(numbers(jobs, "num_cpus"))
    held = {"gpus": recorded.gpus, "cpus": cpus, "jobs": np.ones(jobs.num_rows)}
    return _Log(jobs, nodes, recorded.start.tolist(), recorded.end.tolist(), held)


def _nodes(log: _Log, found: Learnt) -> dict[str, list[str]]:
    """Find the nodes; returns the nodes that are alike, by group."""
    on: dict[str, list[int]] = {}
    types: dict[str, Counter[str]] = {}
    kinds = log.texts("gpu_type")
    for row, names in enumerate(log.nodes):
        for name in names:
            on.setdefault(name, []).append(row)
            if kinds[row]:
                types.setdefault(name, Counter())[kinds[row].lower()] += 1
    share = np.array([1 / max(1, len(names)) for names in log.nodes])
    groups: dict[str, list[str]] = {}
    most: dict[str, list[int]] = {}
    for name in sorted(on):
        kind = types[name].most_common(1)[0][0] if name in types else ""
        group = f"{name.rstrip('0123456789')}|{kind}"
        groups.setdefault(group, []).append(name)
        here = [most_at_once(on[name], log.start, log.end, log.held[key] * share)
                for key in ("gpus", "cpus")]  # fmt: skip
        most.setdefault(group, [0, 1])
        most[group] = [max(a, int(np.ceil(b - 1e-9))) for a, b in
                       zip(most[group], here, strict=True)]  # fmt: skip
    if not any(gpus for gpus, _ in most.values()):
        raise SpecError("learn", "found no job that held a GPU on a node that the log names.")
    for group, names in groups.items():
        gpus, cpus = most[group]
        kind = group.partition("|")[2]
        gres = f" Gres=gpu:{kind + ':' if kind else ''}{gpus}" if gpus else ""
        value = f"{len(names)} x {cpus} CPUs" + (f", {gpus} {kind or 'GPUs'}" if gpus else "")
        why = f"most held at once on any of {len(names):,} nodes (NodeList, AllocTRES)"
        line = f"NodeName={','.join(names)} CPUs={cpus}{gres}"
        found.say(found.conf, line, f"nodes {names[0]} ...", value, "inferred", why)
    return groups


def _partitions(log: _Log, found: Learnt, groups: dict[str, list[str]]) -> None:
    rows: dict[str, list[int]] = {}
    for row, names in enumerate(log.texts("partition")):
        if names:
            rows.setdefault(names, []).append(row)
    if "partition" in log.jobs.column_names:
        words = log.jobs["partition"].to_pylist()
        found.nameless = sum(map(bool, words)) - sum(map(len, rows.values()))
    if not any(log.nodes[row] for its in rows.values() for row in its):
        rows = {"all": list(range(log.jobs.num_rows))}
    limits = numbers(log.jobs, "estimate")
    for place, (name, its) in enumerate(sorted(rows.items(), key=lambda item: -len(item[1]))):
        seen = {node for row in its for node in log.nodes[row]}
        nodes = [node for group in groups.values() if len(seen & set(group)) * 2 >= len(group)
                 for node in group]  # fmt: skip
        nodes = nodes or sorted(seen)
        if not nodes:
            continue
        asked = limits[its][~np.isnan(limits[its])]
        longest = float(asked.max()) if len(asked) else None
        most = "INFINITE" if longest is None else f"{int(np.ceil(longest / _MINUTE))}"
        why = f"nodes of {len(its):,} jobs; the longest limit asked for, by "
        why += f"{int((asked == longest).sum()) if longest is not None else 0:,} jobs"
        line = f"PartitionName={name} Nodes={','.join(nodes)} MaxTime={most}"
        line += " Default=YES" * (place == 0)
        value = f"{len(nodes)} nodes, limit {most} min" if longest else f"{len(nodes)} nodes"
        found.say(found.conf, line, f"partition {name}", value, "inferred", why)


def _limits(log: _Log, found: Learnt) -> None:
    """Find the limits that jobs waited for; the log names whose they are, and of what kind."""
    start, submit = (numbers(log.jobs, name) for name in ("start_time", "submit_time"))
    wait = np.nan_to_num(start - submit)
    bound: dict[str, list[int]] = {}
    for row, word in enumerate(log.texts("reason")):
        if word in LIMITS:
            bound.setdefault(word, []).append(row)
        elif word.startswith(("QOS", "Assoc", "Max")):
            found.unknown[word] = found.unknown.get(word, 0.0) + float(wait[row]) / 3600
    columns = {name: log.texts(name) for name in ("qos", "user", "account")}
    for word, its in bound.items():
        _limit(log, found, columns, word, its)
    if found.accounts:
        pairs = sorted(set(zip(columns["account"], columns["user"], strict=True)))
        tree = [f"add account {name}" for name in sorted({a for a, _ in pairs if a})]
        tree += [f"add user {user} account={name}" for name, user in pairs if name and user]
        tree += [f"add qos {name}" for name in sorted(set(columns["qos"]) - {""})]
        found.accounts = ["# read: accounts, their users, QOS", *tree, *found.accounts]


def _limit(
    log: _Log, found: Learnt, columns: dict[str, list[str]], word: str, its: list[int]
) -> None:
    """Find the limits of one kind: for each QOS or account the most that was held at once."""
    owners, key, counts = LIMITS[word]
    of: dict[tuple[str, ...], list[int]] = {}
    for row, owner in enumerate(zip(*(columns[name] for name in owners), strict=True)):
        of.setdefault(owner, []).append(row)
    waited: Counter[tuple[str, ...]] = Counter(
        tuple(columns[name][row] for name in owners) for row in its
    )
    limit: dict[str, float] = {}
    for owner in waited:
        most = most_at_once(of[owner], log.start, log.end, log.held[counts])
        limit[owner[0]] = max(limit.get(owner[0], 0.0), most)
    kind = "account" if owners[0] == "account" else "qos"
    for name, most in limit.items():
        if name and most:
            jobs = sum(number for owner, number in waited.items() if owner[0] == name)
            why = f"{jobs:,} jobs waited for it ({word}); the most ever held at once"
            line = f"modify {kind} where name={name} set {key}={int(most)}"
            finding = (f"{kind} {name}", f"{key}={int(most)}", "inferred", why)
            found.say(found.accounts, line, *finding)


def site_file(found: Learnt, name: str) -> str:
    """Return the text of a site file that says what was learnt."""
    safe = re.sub(r"[^A-Za-z0-9_. -]", "?", name)[:80]
    parts = [f"# What a log ({safe}) tells of its site: windtunnel learn.", "[site.slurm]"]
    for key, text in found.slurm.items():
        parts += [f"{key} = '''", text, "'''"]
    parts += ["", "[scheduler]", 'policy = "slurm"']
    return "\n".join(parts) + "\n"


def given_file(folder: str, out: Path) -> str:
    """Return the text of a site file at ``out`` that names Slurm's own files."""
    at = os.path.relpath(folder, out.parent)
    lines = ["# given: Slurm's own files", "[site]", f"slurm_conf = {toml_value(at)}"]
    return "\n".join([*lines, "", "[scheduler]", 'policy = "slurm"']) + "\n"
