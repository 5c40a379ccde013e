"""Compare runs of elastic artifacts with ours: ``check_artifact_runs.py FOLDER [--json]``.

The folder has ``pollux/`` with ``profiles/``, ``workloads/load-LOAD.csv`` and
``targets/{runs,jobs}.csv``, or is such a folder itself; beside ``pollux/`` there may be ``sia/``.
Tiresias and Optimus are compared in every job's completion, restarts, GPU-seconds and first start,
Pollux in the mean completion (within 3 %), Sia in that, the last completion and restarts a job
(6, 6, 20 %); ``--policy=NAME`` keeps to one. Runs of policies that are not flown here are listed.
Exit status 1 where a run that was flown differs.
"""

from __future__ import annotations

import csv
import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windtunnel.errors import WindtunnelError
from windtunnel.policies.pollux.clock import ElasticJob
from windtunnel.policies.pollux.in_ticks import PolluxPolicy, run_in_ticks
from windtunnel.policies.pollux.roaming import Machines
from windtunnel.throughput.training_profiles import read_profiles, read_profiles_by_type

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windtunnel.policies.pollux.clock import Trained
    from windtunnel.throughput.training_profiles import Application

#: Policies whose mean completion alone is compared, and its part by which it may differ.
BANDS = {"pollux": 0.03, "sia": 0.06}
#: Part by which Sia's restarts a job may differ.
SIA_RESTARTS = 0.2
POLICIES = {"tiresias", "optimus", *BANDS}
#: What is compared of each job, and how far numbers may differ to be equal.
MEASURES = {"jct": 0.0, "restarts": 0.0, "gpu_seconds": 1e-6, "first_start": 0.0}


def table(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def measured(job: Trained) -> dict[str, float]:
    """Return what a job of ours came to."""
    assert job.end is not None
    assert job.first_start is not None
    return {
        "jct": job.end - job.job.submit,
        "restarts": job.starts - 1,
        "gpu_seconds": job.held,
        "first_start": job.first_start,
    }


def _elastic_jobs(
    rows: list[dict[str, str]], applications: dict[str, Application]
) -> list[ElasticJob]:
    return [
        ElasticJob(
            row["name"],
            applications[row["application"]],
            float(row["time"]),
            int(row["num_replicas"]),
            int(row["batch_size"]),
        )
        for row in rows
    ]


def flown(
    run: dict[str, str], workload: list[dict[str, str]], applications: dict[str, Application]
) -> list[Trained]:
    """Return the jobs of a run as we fly it."""
    rows = [row for row in workload if row.get("workload", run["workload"]) == run["workload"]]
    jobs = _elastic_jobs(rows, applications)
    policy = PolluxPolicy(
        run["policy"],
        interval=float(run["interval"]),
        interference=float(run["interference"]),
        avoid=float(run["avoid"]) if run["policy"] == "pollux" else None,
    )
    nodes = int(run["nodes"])
    machines = Machines(("",) * nodes, (int(run["gpus"]),) * nodes)
    return run_in_ticks(jobs, machines, policy)


def check_sia(
    run: dict[str, str], workloads: Path, machines: Machines, band: float
) -> dict[str, Any]:
    """Return what was compared of one run of Sia: means over its jobs."""
    name, number = run["workload"].split("/workload-")
    applications = machines.applications[machines.types[0]]
    rows = [row for row in table(workloads / f"{name}.csv") if row["workload"] == number]
    jobs = _elastic_jobs(rows, applications)
    policy = PolluxPolicy("sia", interval=float(run["interval"]), power=float(run["p"]))
    done = run_in_ticks(jobs, machines, policy)
    ours = {
        "mean_seconds": sum((job.end or 0.0) - job.job.submit for job in done) / len(done),
        "last_completion": max(job.end or 0.0 for job in done),
        "restarts_per_job": sum(job.starts - 1 for job in done) / len(done),
    }
    compared: dict[str, Any] = {
        name: {"theirs": float(run[name]), "ours": mine, "gap": mine / float(run[name]) - 1}
        for name, mine in ours.items()
    }
    within = abs(compared["mean_seconds"]["gap"]) <= band
    within &= abs(compared["last_completion"]["gap"]) <= band
    within &= abs(compared["restarts_per_job"]["gap"]) <= SIA_RESTARTS
    return {"run": run["run"], "policy": run["policy"], "within": within, "compared": compared}


def found_of_sia(root: Path, base: Path, only: list[str]) -> Iterator[dict[str, Any]]:
    """Check every run of Sia of a folder; the profiles of the type ``aws`` are Pollux's."""
    if only and "sia" not in only:
        return
    applications = read_profiles_by_type(root / "profiles", base / "profiles", "aws")
    kinds = ("aws",) * 6 + ("dgx-ext",) * 2 + ("rtx",) * 3
    machines = Machines(kinds, (4,) * 6 + (8,) * 5, applications)
    for run in table(root / "targets" / "runs.csv"):
        if run["policy"] != "sia":
            yield {"run": run["run"], "policy": run["policy"], "within": None}
            continue
        try:
            yield check_sia(run, root / "workloads", machines, BANDS["sia"])
        except (WindtunnelError, OSError, KeyError) as error:
            yield {"run": run["run"], "policy": "sia", "within": False, "error": str(error)}


def check(run: dict[str, str], jobs: list[Trained], wanted: dict[str, Any]) -> dict[str, Any]:
    """Return what was compared of one run, what is equal, and the largest difference."""
    compared: dict[str, Any] = {}
    wanted = {} if run["policy"] in BANDS else wanted  # random numbers: no job is comparable
    ours = {job.job.name: measured(job) for job in jobs}
    for name, tolerance in MEASURES.items():
        pairs = [
            (ours[job][name], float(row[name]))
            for job, row in wanted.items()
            if job in ours and row.get(name) not in (None, "")
        ]
        if pairs:
            gaps = [abs(mine - theirs) for mine, theirs in pairs]
            equal = sum(gap <= tolerance for gap in gaps)
            compared[name] = {"compared": len(pairs), "equal": equal, "largest": max(gaps)}
    mean = sum(one["jct"] for one in ours.values()) / len(ours)
    theirs = float(run["mean"])
    compared["mean"] = {"theirs": theirs, "ours": mean, "gap": mean / theirs - 1}
    band = BANDS.get(run["policy"])
    if band is not None:
        within = abs(mean / theirs - 1) <= band
        return {"run": run["run"], "policy": run["policy"], "within": within, "compared": compared}
    same = abs(mean - theirs) <= 1e-9 * mean
    counts = [c for name, c in compared.items() if name in MEASURES]
    within = same and all(c["equal"] == c["compared"] for c in counts) and bool(ours)
    return {"run": run["run"], "policy": run["policy"], "within": within, "compared": compared}


def found_of_pollux(root: Path, only: list[str]) -> Iterator[dict[str, Any]]:
    """Check every run of Pollux's folder."""
    applications = read_profiles(root / "profiles")
    wanted: dict[str, dict[str, Any]] = defaultdict(dict)
    for row in table(root / "targets" / "jobs.csv"):
        wanted[row["run"]][row["name"]] = row
    for run in table(root / "targets" / "runs.csv"):
        if only and run["policy"] not in only:
            continue
        if run["policy"] not in POLICIES:
            yield {"run": run["run"], "policy": run["policy"], "within": None}
            continue
        try:
            workload = table(root / "workloads" / f"load-{run['load']}.csv")
            jobs = flown(run, workload, applications)
        except (WindtunnelError, OSError) as error:
            yield ({"run": run["run"], "policy": run["policy"], "within": False}
                         | {"error": str(error)})  # fmt: skip
            continue
        yield check(run, jobs, wanted[run["run"]])


def main(arguments: list[str]) -> int:
    """Check every run of a folder."""
    folders = [Path(word) for word in arguments if not word.startswith("--")]
    only = [word.partition("=")[2] for word in arguments if word.startswith("--policy=")]
    if len(folders) != 1 or not folders[0].is_dir():
        sys.exit("usage: check_artifact_runs.py FOLDER [--json] [--policy=NAME]")
    root = folders[0] / "pollux" if (folders[0] / "pollux").is_dir() else folders[0]
    found = list(found_of_pollux(root, only))
    if (folders[0] / "sia").is_dir():
        found += found_of_sia(folders[0] / "sia", root, only)
    if "--json" in arguments:
        sys.stdout.write(json.dumps({"folder": folders[0].name, "runs": found}, indent=1) + "\n")
    else:
        for one in found:
            told = {
                True: "within" if one["policy"] in BANDS else "equal",
                False: "DIFFERS",
                None: "not flown here",
            }[one["within"]]
            counts = one.get("compared", {})
            jobs_equal = " ".join(
                f"{name} {counts[name]['equal']}/{counts[name]['compared']}"
                for name in MEASURES
                if name in counts
            )
            if one["policy"] in BANDS and counts:
                jobs_equal = " ".join(f"{name} {c['gap']:+.2%}" for name, c in counts.items())
            sys.stdout.write(f"{one['run']:34} {told:14} {jobs_equal}{one.get('error', '')}\n")
    return 1 if any(one["within"] is False for one in found) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
