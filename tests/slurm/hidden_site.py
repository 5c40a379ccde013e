"""Sites with hidden limits: what scheduled them is known here, and the log alone goes to a command.

Each world is a Slurm of three kinds of nodes, overlapping partitions of two tiers, QOS with limits
of users and of all, an account with a limit, arrays with throttles, jobs that wait for others,
and jobs without time limits. Its log is what sacct would print of a flight under policy ``slurm``,
each start and run time late by up to two seconds as on a real machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

import windtunnel as wt
from windtunnel.policies.slurm.policy import Slurm
from windtunnel.policies.slurm.site_of import cluster_of_site, read_site_folder
from windtunnel.site.slurm_changes import site_at, site_with_nodes

if TYPE_CHECKING:
    from pathlib import Path

#: 2025-01-06, a Monday.
EPOCH = 1_736_121_600
DAY = 86400
HEAD = (
    "JobID|JobIDRaw|JobName|User|Account|Partition|QOS|State|Submit|Eligible|Start|End|ElapsedRaw|"
    "Timelimit|Priority|NNodes|NCPUS|ReqTRES|AllocTRES|NodeList|Reason"
)


#: Priority of each QOS, where these count.
RANKS = {"normal": 0, "capped": 100, "pooled": 50}


@dataclass(frozen=True)
class World:
    """A hidden site and what it did.

    Attributes:
        folder: with ``etc`` (Slurm's files) and ``log.txt``.
        jobs: columns of its workload.
        limits: what bounds: words such as ``("capped", "user", 8)`` -> limit.
        wait: s of each job, shape (n,).
        reason: of each job, as Slurm says it.
    """

    folder: Path
    jobs: dict[str, list[Any]]
    limits: dict[str, int]
    wait: np.ndarray
    reason: list[str]

    def with_nodes(self, more: int) -> np.ndarray:
        """Return the true waits with so many A100 nodes more, s."""
        site = site_with_nodes(read_site_folder(self.folder / "etc"), more, "a100")
        out = wt.simulate(self.jobs, cluster_of_site(site, "truth"), Slurm(site))
        return np.array(out.table["start_time"]) - np.array(self.jobs["first_submit"])


def world(
    folder: Path,
    seed: int,
    *,
    num_jobs: int = 700,
    load: float = 0.95,
    size: int = 1,
    is_ranked: bool = False,
    is_held: bool = False,
) -> World:
    """Make a world and write its log.

    Args:
        folder: for its files.
        seed: of everything drawn.
        num_jobs: at least so many, tasks of arrays counted.
        load: of the A100 nodes.
        size: times as many nodes, and as wide limits.
        is_ranked: QOS have priorities, by which jobs are ordered.
        is_held: half of the A100 nodes are reserved for maintenance for a day.
    """
    rng = np.random.default_rng(seed)
    limits = {
        "user_gpus": int(rng.choice([8, 16])) * size,
        "group_gpus": int(rng.choice([16, 24])) * size,
        "account_jobs": int(rng.integers(4, 8)) * size,
        "throttle": int(rng.integers(2, 5)),
        "a100": int(rng.integers(5, 8)) * size,
        "v100": int(rng.integers(3, 5)) * size,
        "cpu": 2 * size,
    }
    _write_site(folder / "etc", limits, is_ranked=is_ranked)
    if is_held:
        half = limits["a100"] // 2
        (folder / "etc" / "maintenance.res").write_text(
            "ReservationName=maint StartTime=2025-01-06T18:00:00 EndTime=2025-01-07T18:00:00\n"
            f"   Nodes=ga[01-{half:02d}] NodeCnt={half} Users=root Accounts=(null) Flags=MAINT\n",
            encoding="utf-8",
        )
    jobs = _workload(rng, num_jobs, load, limits)
    jobs["priority"] = [
        RANKS[qos] * 1000 if is_ranked else 4_294_901_000 - k for k, qos in enumerate(jobs["qos"])
    ]
    site = site_at(read_site_folder(folder / "etc"), lambda at: at - EPOCH)
    out = wt.simulate(jobs, cluster_of_site(site, "truth"), Slurm(site))
    table = out.table.to_pylist()
    names = [node.name for node in site.nodes]
    reason = [row["wait_reason"] or "None" for row in table]
    wait = np.array([row["start_time"] for row in table]) - np.array(jobs["first_submit"])
    _put_on_cores(jobs, table, [k for k, node in enumerate(site.nodes) if not node.gpus])
    lines = [HEAD, *(_line(k, jobs, row, names) for k, row in enumerate(table))]
    (folder / "log.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return World(folder, jobs, limits, wait, reason)


def _put_on_cores(
    jobs: dict[str, list[Any]], table: list[dict[str, Any]], nodes: list[int]
) -> None:
    """Say where CPU jobs ran, which a flight does not: best fit, as Slurm has it."""
    ends: dict[int, list[tuple[float, int]]] = {node: [] for node in nodes}
    rows = [k for k, gpus in enumerate(jobs["num_gpus"]) if not gpus]
    for k in sorted(rows, key=lambda row: table[row]["start_time"]):
        now, cpus = table[k]["start_time"], jobs["num_cpus"][k]
        free = {n: 48 - sum(c for end, c in stays if end > now) for n, stays in ends.items()}
        node = min((n for n in nodes if free[n] >= cpus), key=lambda n: free[n], default=nodes[0])
        ends[node].append((table[k]["end_time"], cpus))
        table[k]["nodes"] = [node]


def _write_site(etc: Path, limits: dict[str, int], *, is_ranked: bool) -> None:
    etc.mkdir(parents=True)
    order = "multifactor\nPriorityWeightQOS=100000" if is_ranked else "basic"
    a, v = limits["a100"], limits["v100"]
    (etc / "slurm.conf").write_text(
        "SchedulerType=sched/backfill\nSchedulerParameters=bf_interval=30\n"
        f"SelectTypeParameters=CR_Core\nPriorityType=priority/{order}\n"
        "AccountingStorageEnforce=limits,qos\n"
        f"NodeName=ga[01-{a:02d}] CPUs=64 Gres=gpu:a100:8\n"
        f"NodeName=gv[01-{v:02d}] CPUs=32 Gres=gpu:v100:4\n"
        f"NodeName=c[01-{limits['cpu']:02d}] CPUs=48\n"
        f"PartitionName=main Nodes=ga[01-{a:02d}],gv[01-{v:02d}] MaxTime=2-0 Default=YES\n"
        f"PartitionName=quick Nodes=gv[01-{v:02d}] MaxTime=4:00:00 PriorityTier=5\n"
        f"PartitionName=cpu Nodes=c[01-{limits['cpu']:02d}] MaxTime=1-0\n",
        encoding="utf-8",
    )
    (etc / "site.sacctmgr").write_text(
        "add account lab\nadd account small\n"
        f"modify account where name=small set GrpJobs={limits['account_jobs']}\n"
        + "".join(f"add user u{k} account={'small' if k < 3 else 'lab'}\n" for k in range(12))
        + f"add qos capped MaxTRESPU=gres/gpu={limits['user_gpus']}\n"
        f"add qos pooled GrpTRES=gres/gpu={limits['group_gpus']}\n"
        + "".join(
            f"modify qos where name={name} set Priority={rank}\n" for name, rank in RANKS.items()
        ).replace("modify qos where name=normal set", "add qos normal"),
        encoding="utf-8",
    )


def _workload(
    rng: np.random.Generator, num_jobs: int, load: float, limits: dict[str, int]
) -> dict[str, list[Any]]:
    rows: list[dict[str, Any]] = []
    number = 1000
    while len(rows) < num_jobs:
        number += 1
        user = int(rng.integers(0, 12))
        row = {
            "user": f"u{user}",
            "account": "small" if user < 3 else "lab",
            "qos": str(rng.choice(["normal", "capped", "pooled"], p=[0.6, 0.25, 0.15])),
            "partition": str(rng.choice(["main", "quick", "cpu"], p=[0.7, 0.15, 0.15])),
            "array_limit": 0,
        }
        row |= _shape(rng, row["partition"])
        if row["num_gpus"] > limits["user_gpus"]:
            row["qos"] = "normal"  # it would never start
        if rng.random() < 0.06 and row["num_gpus"] <= 8:
            size = int(rng.integers(6, 16))
            row["array_limit"] = limits["throttle"]
            rows += [row | {"job_id": f"{number}_{k}"} | _times(rng, row) for k in range(size)]
            continue
        rows.append(row | {"job_id": str(number)} | _times(rng, row))
    work = sum(row["num_gpus"] * row["duration"] for row in rows if row["gpu_type"] != "v100")
    span = work / (load * 8 * limits["a100"])
    at = np.sort(rng.random(len({row["job_id"].split("_")[0] for row in rows})) * span)
    when = dict(zip(dict.fromkeys(r["job_id"].split("_")[0] for r in rows), at, strict=True))
    for row in rows:
        submit = float(np.floor(when[row["job_id"].split("_")[0]]))
        row["first_submit"] = submit
        holds = "_" not in row["job_id"] and rng.random() < 0.05
        row["submit_time"] = submit + (float(rng.integers(600, 7200)) if holds else 0.0)
    rows.sort(key=lambda row: row["submit_time"])
    return {key: [row[key] for row in rows] for key in rows[0]}


def _shape(rng: np.random.Generator, partition: str) -> dict[str, Any]:
    if partition == "cpu":
        cpus = int(rng.choice([8, 16, 48]))
        return {"num_gpus": 0, "num_nodes": 1, "num_cpus": cpus, "gpu_type": None}
    if partition == "quick":
        gpus = int(rng.choice([1, 2, 4]))
        return {"num_gpus": gpus, "num_nodes": 1, "num_cpus": 4 * gpus, "gpu_type": "v100"}
    gpus = int(rng.choice([1, 2, 4, 8, 16], p=[0.3, 0.2, 0.2, 0.2, 0.1]))
    nodes = max(1, gpus // 8)
    return {"num_gpus": gpus, "num_nodes": nodes, "num_cpus": 4 * gpus, "gpu_type": "a100"}


def _times(rng: np.random.Generator, row: dict[str, Any]) -> dict[str, Any]:
    most = 4 * 3600 if row["partition"] == "quick" else 86400
    run = float(np.clip(rng.lognormal(np.log(3600), 1.1), 60, most - 60) // 1)
    asked = min(most, 60.0 * np.ceil(run * rng.uniform(1, 4) / 60))
    return {"duration": run, "estimate": None if rng.random() < 0.1 else asked}


def _line(k: int, jobs: dict[str, list[Any]], row: dict[str, Any], names: list[str]) -> str:
    job = {key: column[k] for key, column in jobs.items()}
    start = EPOCH + int(row["start_time"])
    tres = f"cpu={job['num_cpus']},node={job['num_nodes']},billing={job['num_cpus']}"
    if job["num_gpus"]:
        tres += f",gres/gpu={job['num_gpus']},gres/gpu:{job['gpu_type']}={job['num_gpus']}"
    cells = (
        *(job["job_id"], str(10_000 + k), "run", job["user"], job["account"], job["partition"]),
        *(
            job["qos"],
            "COMPLETED",
            EPOCH + int(job["first_submit"]),
            EPOCH + int(job["submit_time"]),
        ),
        *(start, start + int(job["duration"]), int(job["duration"])),
        *("UNLIMITED" if job["estimate"] is None else _span(job["estimate"]), job["priority"]),
        *(job["num_nodes"], job["num_cpus"], tres, tres),
        *(",".join(names[n] for n in row["nodes"]), row["wait_reason"] or "None"),
    )
    return "|".join(str(cell) for cell in cells)


def _span(seconds: float) -> str:
    minutes = int(seconds // 60)
    return f"{minutes // 1440}-{minutes % 1440 // 60:02d}:{minutes % 60:02d}:00"
