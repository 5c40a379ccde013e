"""Read a recorded run of slurmctld: a folder as `data/slurm_reference` describes it."""

from __future__ import annotations

import calendar
import csv
import gzip
import json
import math
import re
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from windtunnel.sim.slurm.requests import SlurmRequest
from windtunnel.site.host_list import hosts
from windtunnel.site.sacctmgr import read_sacctmgr
from windtunnel.site.slurm_conf import read_slurm_conf

if TYPE_CHECKING:
    from windtunnel.site.slurm import SlurmSite

_LINE = re.compile(r"\[(\d+)-(\d+)-(\d+)T(\d\d):(\d\d):(\d\d\.\d+)\] (.*)")
_START = re.compile(r"sched: Allocate JobId=(\S+) NodeList=(\S+)")
_FILL = re.compile(r"_start_job: Started JobId=(\S+) in (\S+) on (\S+)")
_GONE = re.compile(r"preempted JobId=(\S+) has been (requeued|killed)")
_DONE = re.compile(r"_job_complete: JobId=(\S+) done")


@dataclass
class Stay:
    """One attempt of a job: start and end, s with tenths, and its nodes."""

    job: int
    start: float
    nodes: list[str]
    loop: str
    part: str
    end: float | None = None
    is_preempted: bool = False
    requeued: float | None = None

    @property
    def queued_again(self) -> float:
        """When the job was queued anew after this attempt, s: as recorded, or when it had ended."""
        if self.requeued is not None:
            return self.requeued
        return math.floor(self.end) + 1 if self.is_preempted else self.end


@dataclass
class Record:
    """A recorded run.

    Attributes:
        requests: what was asked for, a job or task each.
        rows: `jobs.csv`, in the same order.
        work: the row of `workload.csv` of each.
        shares: what each job had on each node: name -> (cpus, memory, GPUs).
        stays: all attempts, in order of start.
        preemptions: when which job was stopped for another.
    """

    folder: Path
    site: SlurmSite
    requests: list[SlurmRequest]
    rows: list[dict[str, str]]
    work: list[dict[str, str]]
    shares: list[dict[str, tuple[int, int, int]]]
    stays: list[Stay]
    events: list[tuple[float, str]]
    details: list[dict[str, str]]
    preemptions: list[tuple[float, int]]
    meta: dict[str, object]
    by_id: dict[int, int] = field(default_factory=dict)
    t0: int = 0

    def stays_of(self, job: int) -> int:
        """Return how many attempts of a job are recorded."""
        return sum(stay.job == job for stay in self.stays)


def table(file: Path) -> list[dict[str, str]]:
    """Return a CSV file's rows; none where there is no file."""
    if not file.exists():
        return []
    with file.open(newline="") as handle:
        return list(csv.DictReader(handle))


def text(file: Path) -> str:
    """Return a compressed file's text."""
    return gzip.decompress(file.read_bytes()).decode(errors="replace") if file.exists() else ""


def read_record(folder: str | Path) -> Record:
    """Return the recorded run of a folder."""
    folder = Path(folder)
    site = read_slurm_conf(folder)
    if (folder / "accounts.sacctmgr").exists():
        qos, associations = read_sacctmgr(folder / "accounts.sacctmgr")
        site = msgspec.structs.replace(site, qos=qos, associations=associations)
    work = {row["job"]: row for row in table(folder / "workload.csv")}
    details = _details(text(folder / "record/scontrol_jobs.txt.gz"))
    rows = [r for r in table(folder / "record/jobs.csv") if r["job"] in work]
    rows = [r for r in rows if r["slurm_id"] in details]
    record = Record(
        folder=folder,
        site=site,
        requests=[_request(r, work[r["job"]], details[r["slurm_id"]]) for r in rows],
        rows=rows,
        work=[work[r["job"]] for r in rows],
        shares=[_shares(details[r["slurm_id"]]["all"]) for r in rows],
        stays=[],
        events=[],
        preemptions=[],
        details=[details[r["slurm_id"]] for r in rows],
        meta=json.loads((folder / "scenario.json").read_text()),
        by_id={int(r["slurm_id"]): at for at, r in enumerate(rows)},
    )
    record.t0 = int((folder / "record/t0").read_text())
    _read_log(record, record.t0)
    _share_gpus(record)
    _read_requeues(record)
    return record


def _read_requeues(record: Record) -> None:
    """Read when jobs were queued anew: as the accounts say of each attempt, or of the last one."""
    content = text(record.folder / "record/sacct.txt.gz").splitlines()
    submits = {}
    for fields in csv.DictReader(content, delimiter="|"):
        job = record.by_id.get(int(fields["JobIDRaw"])) if fields["JobIDRaw"].isdigit() else None
        if job is not None and fields["Start"][:1].isdigit():
            submits[job, _seconds(fields["Start"], record.t0)] = _seconds(
                fields["Submit"], record.t0
            )
    before: dict[int, Stay] = {}
    for stay in record.stays:
        if stay.job in before:
            when = submits.get((stay.job, math.floor(stay.start)), -math.inf)
            before[stay.job].requeued = when if when > before[stay.job].start else None
        before[stay.job] = stay
    for job, row in enumerate(record.rows):
        past = [stay for stay in record.stays if stay.job == job][:-1]
        # A launch that failed is tried again without being submitted anew.
        if past and past[-1].start < float(row["submit"]):
            past[-1].requeued = float(row["submit"])


def _seconds(stamp: str, t0: int) -> int:
    return calendar.timegm(time.strptime(stamp, "%Y-%m-%dT%H:%M:%S")) - t0


def _share_gpus(record: Record) -> None:
    """Say how many GPUs jobs that asked for a total had on each node: the record does not tell.

    They are taken in the order of the nodes, as many as were free there.
    """
    has = {node.name: sum(node.gpus.values()) for node in record.site.nodes}
    for at, stay in enumerate(record.stays):
        asked = record.requests[stay.job]
        if not asked.gpus:
            continue
        rest = asked.gpus
        running = [s for s in record.stays[:at] if s.end is None or s.end > stay.start]
        for place, name in enumerate(stay.nodes):
            used = sum(_gpus(record, other, name) for other in running if name in other.nodes)
            later = len(stay.nodes) - place - 1
            gpus = max(min(rest - later, has[name] - used), 0)
            rest -= gpus
            cpus, memory, _ = record.shares[stay.job].get(name, (1, 0, 0))
            record.shares[stay.job][name] = (cpus, memory, gpus)


def _gpus(record: Record, stay: Stay, node: str) -> int:
    return record.shares[stay.job].get(node, (0, 0, 0))[2] or record.requests[stay.job].node_gpus


def _details(content: str) -> dict[str, dict[str, str]]:
    found = {}
    for line in content.splitlines():
        fields = dict(re.findall(r"(\S+?)=(.*?)(?= \S+?=|$)", line))
        if "JobId" in fields:
            found[fields["JobId"]] = fields | {"all": line}
    return found


def _numbers(ids: str) -> int:
    return sum(int(p.partition("-")[2] or p) - int(p.partition("-")[0]) + 1 for p in ids.split(","))


def _shares(line: str) -> dict[str, tuple[int, int, int]]:
    found = {}
    for names, cpus, memory, gres in re.findall(
        r"Nodes=(\S+) CPU_IDs=(\S+) Mem=(\d+) GRES=(\S*)", line
    ):
        gpus = sum(int(n) for n in re.findall(r"gpu(?::[A-Za-z_]\w*)?:(\d+)", gres))
        for name in hosts(names):
            found[name] = (_numbers(cpus), int(memory), gpus)  # GRES is gone once a job has ended
    return found


def _request(row: dict[str, str], work: dict[str, str], detail: dict[str, str]) -> SlurmRequest:
    cpus, count = int(work["cpus"]), int(work["nodes"] or 0)
    gpus = int(work["gpus"] or 0)
    extra = work["extra"].split()
    options = dict(w.removeprefix("--").partition("=")[::2] for w in extra)
    minutes = -(-int(work["limit"]) // 60) if work["limit"] else None
    array = detail.get("ArrayJobId", "")
    return SlurmRequest(
        identity=int(array or row["slurm_id"]),
        submit=float(work["submit"] if int(row["restarts"] or 0) else row["submit"]),
        user=row["user"],
        account=row["account"].replace("(null)", ""),
        qos=row["qos"].replace("(null)", ""),
        partitions=tuple(work["partition"].split(",")) if work["partition"] else (),
        min_nodes=count or 1,
        max_nodes=count or None,
        cpus=cpus * (count or 1),
        node_cpus=cpus if count else 0,
        gpus=0 if count else gpus,
        node_gpus=gpus if count else 0,
        memory=int(work["mem"]) if work["mem"] else None,
        exclusive="exclusive" in options,
        limit=None if minutes is None else minutes * 60,
        nice=int(options.get("nice", 0)),
        array=array,
        array_limit=int(work["array"].partition("%")[2] or 0),
        task=int(row["array_task"]) if row["array_task"].isdigit() else 0,
        reservation=options.get("reservation", ""),
        nodes=tuple(hosts(options["nodelist"])) if "nodelist" in options else (),
        excluded=tuple(hosts(options["exclude"])) if "exclude" in options else (),
        features=frozenset(options.get("constraint", "").split("&")) - {""},
    )


def _read_log(record: Record, t0: int) -> None:  # noqa: C901, PLR0912 - a kind of line each
    """Read starts and ends; ends that the log does not tell are those of `jobs.csv`."""
    opened: dict[int, Stay] = {}

    for line in text(record.folder / "record/slurmctld_log.txt.gz").splitlines():
        found = _LINE.match(line)
        if not found:
            continue
        year, month, day, hour, minute = (int(found[at]) for at in range(1, 6))
        epoch = calendar.timegm((year, month, day, hour, minute, 0)) + float(found[6])
        now, words = round(epoch - t0, 1), found[7]
        record.events.append((now, words))
        start, fill, done = _START.match(words), _FILL.search(words), _DONE.search(words)
        if start or fill:
            job = _number(record, (start or fill)[1])
            if job is None:
                continue
            nodes = hosts(start[2] if start else fill[3])
            part = fill[2] if fill else re.search(r"Partition=(\S+)", words)[1]
            stay = Stay(job, now, nodes, "main" if start else "backfill", part)
            if job in opened:  # requeued
                opened[job].end = opened[job].end or now
            opened[job] = stay
            record.stays.append(stay)
        elif done:
            job = _number(record, done[1])
            if job in opened and opened[job].end is None:
                opened[job].end = now
        elif _GONE.match(words):
            job = _number(record, _GONE.match(words)[1])
            record.preemptions.append((now, job))
            if job in opened and opened[job].end is None:
                opened[job].end = now
                opened[job].is_preempted = True
        elif words.startswith("requeue job") or ": requeue JobId" in words:
            job = _number(record, re.search(r"JobId=(\S+)", words)[1])
            if job in opened and opened[job].end is None:
                opened[job].end = now
    for job, stay in opened.items():
        if stay.end is None and record.rows[job]["end"]:
            stay.end = float(record.rows[job]["end"])


def _number(record: Record, name: str) -> int | None:
    found = re.search(r"\((\d+)\)", name)
    return record.by_id.get(int(found[1] if found else re.sub(r"\D.*", "", name)))
