"""Compare runs of elastic artifacts with ours: ``check_artifact_runs.py FOLDER [--json]``.

The folder has ``pollux/`` with ``profiles/``, ``workloads/load-LOAD.csv`` and
``targets/{runs,jobs}.csv``, ``sia/`` likewise, or both, or is one of the two itself. Profiles and
workloads that it lacks are taken from ``WINDTUNNEL_DATA/elastic``; without ``jobs.csv`` only means
are compared, and means that ``runs.csv`` lacks are worked out of ``jobs.csv``.
Tiresias and Optimus are compared in every job's completion, restarts, GPU-seconds and first start,
Pollux in the mean completion (within 3 %), Sia in that, the last completion and restarts a job
(6, 6, 20 %); ``--policy=NAME`` keeps to one. Runs of policies that are not flown here are listed.
Exit status 1 where a run that was flown differs.

Pollux's search is random, and the artifact does not seed it. Where jobs interfere and nothing
avoids it, one draw of a run is off the mean of its draws by 3 % (one standard deviation): there the
mean of five draws, of seeds 0 to 4, is compared, and each draw is shown.
"""

from __future__ import annotations

import csv
import json
import os
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
#: Seeds of a run of Pollux whose draws scatter.
SEEDS = 5
#: Part by which Sia's restarts a job may differ.
SIA_RESTARTS = 0.2
POLICIES = {"tiresias", "optimus", *BANDS}
#: What is compared of each job, and how far numbers may differ to be equal.
MEASURES = {"jct": 0.0, "restarts": 0.0, "gpu_seconds": 1e-6, "first_start": 0.0}


def found_in(root: Path, family: str, name: str) -> Path:
    """Return a folder's table or profiles: its own, else those of ``WINDTUNNEL_DATA``."""
    if not (root / name).exists() and (data := os.environ.get("WINDTUNNEL_DATA")):
        return Path(data) / "elastic" / family / name
    return root / name


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


def seeds(run: dict[str, str]) -> range:
    """Return the seeds that a run is flown with."""
    avoids = run["policy"] != "pollux" or float(run.get("avoid") or 1)
    return range(1 if avoids or not float(run.get("interference") or 0) else SEEDS)


def flown(
    run: dict[str, str],
    workload: list[dict[str, str]],
    applications: dict[str, Application],
    seed: int = 0,
) -> list[Trained]:
    """Return the jobs of a run as we fly it."""
    number = run["workload"].rpartition("-")[2]
    rows = [row for row in workload if row.get("workload", number) == number]
    if not rows:
        raise ValueError(f"no jobs of workload {number}")
    jobs = _elastic_jobs(rows, applications)
    policy = PolluxPolicy(
        run["policy"],
        interval=float(run.get("interval") or 60),
        interference=float(run.get("interference") or 0),
        avoid=float(run.get("avoid") or 1) if run["policy"] == "pollux" else None,
        seed=seed if run["policy"] == "pollux" else None,
    )
    nodes = int(run.get("nodes") or 16)
    machines = Machines(("",) * nodes, (int(run.get("gpus") or 4),) * nodes)
    return run_in_ticks(jobs, machines, policy)


def check_sia(
    run: dict[str, str], workload: list[dict[str, str]], machines: Machines, band: float
) -> dict[str, Any]:
    """Return what was compared of one run of Sia: means over its jobs."""
    number = run["workload"].rpartition("-")[2]
    applications = machines.applications[machines.types[0]]
    rows = [row for row in workload if row["workload"] == number]
    jobs = _elastic_jobs(rows, applications)
    interval, power = float(run.get("interval") or 60), float(run.get("p") or -0.5)
    policy = PolluxPolicy("sia", interval=interval, power=power)
    done = run_in_ticks(jobs, machines, policy)
    ours = {
        "mean_seconds": sum((job.end or 0.0) - job.job.submit for job in done) / len(done),
        "last_completion": max(job.end or 0.0 for job in done),
        "restarts_per_job": sum(job.starts - 1 for job in done) / len(done),
    }
    compared: dict[str, Any] = {
        name: {"theirs": float(run[name]), "ours": mine, "gap": mine / float(run[name]) - 1}
        for name, mine in ours.items()
        if run.get(name)
    }
    bands = {"mean_seconds": band, "last_completion": band, "restarts_per_job": SIA_RESTARTS}
    within = bool(compared) and all(abs(c["gap"]) <= bands[name] for name, c in compared.items())
    return {"run": run["run"], "policy": run["policy"], "within": within, "compared": compared}


def found_of_sia(root: Path, base: Path, only: list[str]) -> Iterator[dict[str, Any]]:
    """Check every run of Sia of a folder; the profiles of the type ``aws`` are Pollux's."""
    if only and "sia" not in only:
        return
    profiles = found_in(root, "sia", "profiles"), found_in(base, "pollux", "profiles")
    applications = read_profiles_by_type(*profiles, "aws")
    kinds = ("aws",) * 6 + ("dgx-ext",) * 2 + ("rtx",) * 3
    machines = Machines(kinds, (4,) * 6 + (8,) * 5, applications)
    for run in table(root / "targets" / "runs.csv"):
        if run["policy"] != "sia":
            yield {"run": run["run"], "policy": run["policy"], "within": None}
            continue
        try:
            name = run["workload"].partition("/")[0]
            workload = table(found_in(root, "sia", f"workloads/{name}.csv"))
            yield check_sia(run, workload, machines, BANDS["sia"])
        except (WindtunnelError, OSError, KeyError, ValueError) as error:
            message = str(error) or repr(error)
            yield {"run": run["run"], "policy": "sia", "within": False, "error": message}


def _mean_of(wanted: dict[str, Any]) -> float:
    seconds = [float(row["jct"]) for row in wanted.values() if row.get("jct")]
    if not seconds:
        raise ValueError("neither runs.csv nor jobs.csv says how long jobs took")
    return sum(seconds) / len(seconds)


def check(
    run: dict[str, str], draws: list[list[Trained]], wanted: dict[str, Any]
) -> dict[str, Any]:
    """Return what was compared of one run, what is equal, and the largest difference.

    Args:
        run: the row of ``runs.csv``.
        draws: its jobs as we fly it, of one seed or several.
        wanted: its rows of ``jobs.csv``, by job.
    """
    compared: dict[str, Any] = {}
    ours = {job.job.name: measured(job) for job in draws[0]}
    means = [sum(measured(job)["jct"] for job in jobs) / len(jobs) for jobs in draws]
    mean = sum(means) / len(means)
    theirs = float(run["mean"]) if run.get("mean") else _mean_of(wanted)
    wanted = {} if run["policy"] in BANDS else wanted  # random numbers: no job is comparable
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
    compared["mean"] = {"theirs": theirs, "ours": mean, "gap": mean / theirs - 1}
    if len(means) > 1:
        compared["mean"]["draws"] = [one / theirs - 1 for one in means]
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
    applications = read_profiles(found_in(root, "pollux", "profiles"))
    wanted: dict[str, dict[str, Any]] = defaultdict(dict)
    of_jobs = root / "targets" / "jobs.csv"
    for row in table(of_jobs) if of_jobs.exists() else []:
        wanted[row["run"]][row["name"]] = row
    for run in table(root / "targets" / "runs.csv"):
        if only and run["policy"] not in only:
            continue
        if run["policy"] not in POLICIES:
            yield {"run": run["run"], "policy": run["policy"], "within": None}
            continue
        try:
            workload = table(found_in(root, "pollux", f"workloads/load-{run['load']}.csv"))
            draws = [flown(run, workload, applications, seed) for seed in seeds(run)]
            yield check(run, draws, wanted[run["run"]])
        except (WindtunnelError, OSError, KeyError, ValueError) as error:
            named = {"run": run["run"], "policy": run["policy"], "within": False}
            yield named | {"error": str(error) or repr(error)}


def _is_of_sia(root: Path) -> bool:
    runs = table(root / "targets" / "runs.csv") if (root / "targets" / "runs.csv").exists() else []
    return bool(runs) and "mean_seconds" in runs[0]


def main(arguments: list[str]) -> int:
    """Check every run of a folder."""
    folders = [Path(word) for word in arguments if not word.startswith("--")]
    only = [word.partition("=")[2] for word in arguments if word.startswith("--policy=")]
    if len(folders) != 1 or not folders[0].is_dir():
        sys.exit("usage: check_artifact_runs.py FOLDER [--json] [--policy=NAME]")
    inside = [folders[0], *(folders[0] / name for name in ("pollux", "sia"))]
    roots = [root for root in inside if (root / "targets" / "runs.csv").exists()]
    if not roots:
        sys.exit(f"{folders[0]}: no targets/runs.csv in it, nor in pollux/ or sia/ in it")
    found = []
    for root in roots:
        if _is_of_sia(root):
            found += found_of_sia(root, folders[0] / "pollux", only)
        else:
            found += found_of_pollux(root, only)
    if "--json" in arguments:
        sys.stdout.write(json.dumps({"folder": folders[0].name, "runs": found}, indent=1) + "\n")
    else:
        for one in found:
            verdict = {
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
                jobs_equal = " ".join(
                    f"{name} {c['gap']:+.2%}"
                    + "".join(f" ({one:+.2%})" for one in c.get("draws", ()))
                    for name, c in counts.items()
                )
            sys.stdout.write(f"{one['run']:34} {verdict:14} {jobs_equal}{one.get('error', '')}\n")
    return 1 if any(one["within"] is False for one in found) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
