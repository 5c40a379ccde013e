"""Compare published and recomputed runs with ours: ``check_runs.py FOLDER [--json]``.

A run is a folder, at any depth, with ``jobs.csv`` or ``summary.json``. Where its kind (in the
summary, else the name of the folder around it) is ``physical``, its ``schedule.csv`` is replayed,
and its policy flown in the testbed mode; else its policy (in the summary, else its own name) is
flown. What a summary does not say is worked out of the jobs. The trace of 12 columns
(``*.trace``), ``profiles.csv`` and speeds (``tacc_throughputs.json`` or ``wisr_...``, else the
packaged ones) stand in the run's folder or in one above it, else in ``WINDTUNNEL_DATA/shockwave``.
Tables may be packed (``.gz``).
Exit status 1 where a run is out of its band or could not be compared.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from run_measures import job_measures, run_measures

import windtunnel as wt
from windtunnel.cluster.parse import parse_cluster
from windtunnel.errors import WindtunnelError
from windtunnel.policies.shockwave.in_rounds import ShockwavePolicy
from windtunnel.policies.shockwave.replay import Replay
from windtunnel.policies.shockwave.testbed import REAL_RUNS
from windtunnel.site.conditions import Conditions
from windtunnel.study.shockwave import published_books, training_jobs_of
from windtunnel.throughput.shockwave import CLUSTERS

#: Relative bands of the mean completion and the makespan; 0 = every job's completion is equal.
BANDS = {
    "gandiva_fair": (0.0, 0.0),
    "isolated": (0.0, 0.0),
    "max_min_fairness": (0.005, 0.005),
    "max_sum_throughput_perf": (0.01, 0.005),
    "min_total_duration": (0.02, 0.005),
    "allox": (0.005, 0.005),
    "finish_time_fairness": (0.04, 0.035),
    "shockwave": (0.02, 0.03),
}
#: Relative errors by job of a real run's schedule, replayed: median, P90.
REPLAY = (0.007, 0.025)
#: Flights of the testbed mode beside a real run; the market's plans take seconds.
FLIGHTS, MARKET_FLIGHTS = 24, 6
#: GPUs of the real cluster.
REAL_GPUS = 32
#: Relative difference up to which two numbers are equal.
EQUAL = 1e-9


def rows_of(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file, packed or not; none where it is not there."""
    packed = path.with_name(path.name + ".gz")
    if path.exists():
        text = path.read_text("utf-8")
    elif packed.exists():
        text = gzip.decompress(packed.read_bytes()).decode()
    else:
        return []
    return list(csv.DictReader(io.StringIO(text)))


def unpacked(path: Path, folder: Path) -> Path | None:
    """Return a file's path, unpacked into a folder where it is packed; None = it is not there."""
    if path.exists():
        return path
    packed = path.with_name(path.name + ".gz")
    if not packed.exists():
        return None
    plain = folder / path.name
    plain.write_bytes(gzip.decompress(packed.read_bytes()))
    return plain


def tables_of(root: Path, scratch: Path) -> list[Any]:
    """Return the throughput tables to choose from: those in the folder, else the packaged ones."""
    files = [unpacked(root / f"{name}_throughputs.json", scratch) for name in CLUSTERS]
    given = [str(file) for file in files if file is not None]
    return given or list(CLUSTERS)


def home_of(run: Path, root: Path) -> Path:
    """Return the nearest folder around a run, up to the one that was given, with a trace.

    Raises:
        WindtunnelError: there is none.
    """
    around = [run, *run.parents]
    homes = around[: around.index(root) + 1]
    if data := os.environ.get("WINDTUNNEL_DATA"):
        homes.append(Path(data) / "shockwave")
    for home in homes:
        if any(home.glob("*.trace")):
            return home
    raise WindtunnelError(f"{run}: no trace (*.trace) in it, nor in a folder above it.")


def opened(home: Path, run: Path, scratch: Path) -> tuple[Any, Any, float]:
    """Return the trace's jobs, the table of speeds they were profiled with, and how far off.

    Of several traces it is the first with as many jobs as the run has. Where no profiles tell which
    table it is, runs on more GPUs than the real cluster had have that of larger clusters.
    """
    larger = gpus_of(run, rows_of_summary(run)) > REAL_GPUS
    profiles, count = rows_of(home / "profiles.csv"), len(rows_of(run / "jobs.csv"))
    found: list[tuple[bool, float, bool, Any, Any]] = []
    for trace in sorted(home.glob("*.trace")):
        for table in tables_of(home, scratch):
            jobs = wt.open_trace(trace, format="shockwave", throughputs=table).jobs
            ours = jobs["duration"].to_pylist()
            off = max(
                (
                    abs((mine or 0.0) - float(row["ideal_duration"])) / float(row["ideal_duration"])
                    for mine, row in zip(ours, profiles, strict=False)
                ),
                default=0.0,
            )
            suits = ("wisr" in str(table)) == larger
            found.append((len(jobs) != count, off, not suits, jobs, table))
    _, off, _, jobs, table = min(found, key=lambda one: one[:3])
    return jobs, table, off


def rows_of_summary(run: Path) -> dict[str, Any]:
    """Return what a run's summary says; nothing where there is none."""
    path = run / "summary.json"
    found: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.exists() else {}
    return found


def summary_of(run: Path, jobs: Any) -> dict[str, Any]:
    """Return a run's summary; mean completion and makespan are worked out where it has none."""
    summary = rows_of_summary(run)
    jct = {int(row["job"]): float(row["jct"]) for row in rows_of(run / "jobs.csv")}
    submit = jobs["submit_time"].to_pylist()
    if jct:
        summary.setdefault("avg_jct", sum(jct.values()) / len(jct))
        summary.setdefault("makespan", max(submit[job] + seconds for job, seconds in jct.items()))
    return {"policy": run.name, "kind": run.parent.name} | summary


def gpus_of(run: Path, summary: dict[str, Any]) -> int:
    """Return how many GPUs a run had: 32 where nothing says it, as the published ones."""
    if summary.get("utilization_list"):
        return len(summary["utilization_list"])
    for key in ("gpus", "num_gpus"):
        if key in summary:
            return int(summary[key])
    held = [int(gpu) for row in rows_of(run / "schedule.csv") for gpu in row["gpus"].split()]
    return max(held) + 1 if held else 32


def largest(pairs: list[tuple[float, float]]) -> float:
    """Return the largest relative difference."""
    return max((abs(a - b) / max(abs(b), 1e-12) for a, b in pairs), default=0.0)


def check(run: Path, summary: dict[str, Any], jobs: Any, table: Any) -> dict[str, Any]:
    """Return what was compared of one run, what is equal, and the largest difference."""
    name = summary["policy"]
    cut, num_gpus = float(summary.get("cut", 1.0)), gpus_of(run, summary)
    length = float(summary.get("time_per_iteration", 120))
    words = "market" if name == "shockwave" else name
    band = BANDS.get(name)
    if band is None:
        raise WindtunnelError(f"no policy {name!r}; expected one of {', '.join(BANDS)}.")
    policy = ShockwavePolicy.of(f"shockwave:{words}:cut={cut}:round={length}")
    cluster = parse_cluster(f"v100:{num_gpus}")
    works = training_jobs_of(jobs, cluster, Conditions().having(throughputs=table))
    books = published_books(works, num_gpus, policy)
    measures, ours = job_measures(books, works, num_gpus), run_measures(books, works, num_gpus)
    wanted = {int(row["job"]): row for row in rows_of(run / "jobs.csv")}
    compared: dict[str, Any] = {}
    for column in ("jct", "ftf_static", "ftf_themis", "envy_ratio", "rounds_scheduled"):
        pairs = [
            (measures[job][column], float(row[column]))
            for job, row in wanted.items()
            if row.get(column) and job in measures
        ]
        if pairs:
            equal = sum(abs(a - b) <= EQUAL * max(abs(b), 1e-12) for a, b in pairs)
            compared[f"job {column}"] = {
                "compared": len(pairs),
                "equal": equal,
                "largest": largest(pairs),
            }
    for column in ("avg_jct", "makespan", "rounds", "cluster_util", "num_lease_extensions"):
        if column in summary and column in ours:
            difference = ours[column] / summary[column] - 1
            compared[column] = {
                "theirs": summary[column],
                "ours": ours[column],
                "equal": abs(difference) <= EQUAL,
                "difference": difference,
            }
    compared |= _speeds_compared(run, books)
    missing = [column for column in ("avg_jct", "makespan") if column not in compared]
    if missing:
        raise WindtunnelError(f"neither summary nor jobs say {' and '.join(missing)}.")
    within = all(
        abs(compared[column]["difference"]) <= max(limit, EQUAL)
        for column, limit in zip(("avg_jct", "makespan"), band, strict=True)
    )
    if not any(band) and "job jct" in compared:
        within &= compared["job jct"]["equal"] == compared["job jct"]["compared"]
    return {"cut": cut, "gpus": num_gpus, "band": list(band)} | {
        "within": within,
        "compared": compared,
    }


def _speeds_compared(run: Path, books: Any) -> dict[str, Any]:
    """Return how many rounds of the time line have the same speed and batch size."""
    rows = rows_of(run / "timeline.csv")
    ours = {
        (job, at): (speed, size)
        for job, speeds in books.speeds.items()
        for at, speed, size in speeds
    }
    equal = 0
    for row in rows:
        speed, size = ours.get((int(row["job"]), int(row["round"])), (-1.0, -1))
        near = abs(speed - float(row["steps_per_second"])) <= 1e-6 * max(speed, 1.0)
        equal += near and size == int(row["batch_size"])
    return {"timeline rows": {"compared": len(rows), "equal": equal}} if rows else {}


def replayed(run: Path, jobs: Any) -> dict[str, Any]:
    """Return how far a real run's completions are from those of its schedule, replayed."""
    rounds: dict[int, dict[int, tuple[int, ...]]] = {}
    for row in rows_of(run / "schedule.csv"):
        gpus = tuple(int(gpu) for gpu in row["gpus"].split())
        rounds.setdefault(int(row["round"]), {})[int(row["job"])] = gpus
    if not rounds or not rows_of(run / "jobs.csv"):
        raise WindtunnelError("a real run is replayed by its schedule.csv and jobs.csv.")
    replay = Replay([rounds.get(at, {}) for at in range(max(rounds) + 1)])
    jct = {int(row["job"]): float(row["jct"]) for row in rows_of(run / "jobs.csv")}
    submit = dict(enumerate(jobs["submit_time"].to_pylist()))  # a job's id is its line
    clock = replay.fitted(submit, jct)
    errors = replay.errors(clock, submit, jct)
    median, p90 = float(np.median(errors)), float(np.percentile(errors, 90))
    return {
        "jobs": len(errors),
        "fitted": {"stop_time": clock.stop_time, "delay": clock.delay},
        "median_error": median,
        "p90_error": p90,
        "within": median <= REPLAY[0] and p90 <= REPLAY[1],
    }


def testbed(run: Path, summary: dict[str, Any], jobs: Any, table: Any) -> dict[str, Any]:
    """Return how far flights of the testbed mode are from a real run, which gave them nothing.

    Mean completion and makespan: median, tenth and ninetieth percentile of the relative errors of
    an ensemble; then the median over jobs and flights of those of completion times.
    """
    name = summary["policy"]
    words = "market" if name == "shockwave" else name
    real = {int(row["job"]): float(row["jct"]) for row in rows_of(run / "jobs.csv")}
    num_gpus, cut = gpus_of(run, summary), summary.get("cut")
    cut = REAL_RUNS[words].cut if cut is None else float(cut)
    cluster = parse_cluster(f"v100:{num_gpus}")
    works = training_jobs_of(jobs, cluster, Conditions().having(throughputs=table))
    span = max(works[job].submit + jct for job, jct in real.items())
    errors, by_job = [], []
    for seed in range(MARKET_FLIGHTS if words == "market" else FLIGHTS):
        policy = ShockwavePolicy.of(f"shockwave:{words}:cut={cut}:testbed=1:seed={seed}")
        end = published_books(works, num_gpus, policy, without=words).end
        ours = {job: end[job] - works[job].submit for job in real}
        mean = sum(ours.values()) / sum(real.values()) - 1
        errors.append((mean, max(end.values()) / span - 1))
        by_job += [abs(ours[job] / jct - 1) for job, jct in real.items()]
    spreads = np.percentile(np.array(errors), [50, 10, 90], axis=0).T.tolist()
    named = dict(zip(("avg_jct", "makespan"), spreads, strict=True))
    return named | {"flights": len(errors), "median_by_job": float(np.median(by_job))}


def found_of(run: Path, root: Path, scratch: Path, *, flown: bool = False) -> dict[str, Any]:
    """Return what came of one run; where it could not be compared, why.

    Args:
        run: its folder.
        root: the folder that was given.
        scratch: for unpacked files.
        flown: whether a real run is flown in the testbed mode, too.
    """
    named: dict[str, Any] = {"run": str(run.relative_to(root)), "within": False}
    try:
        jobs, table, off = opened(home_of(run, root), run, scratch)
        summary = summary_of(run, jobs)
        named |= {"policy": summary["policy"], "kind": summary["kind"]}
        named["profiles_largest_difference"] = off
        if summary["kind"] == "physical":
            found = named | replayed(run, jobs)
            if flown and {"shockwave": "market"}.get(found["policy"], found["policy"]) in REAL_RUNS:
                found["testbed"] = testbed(run, summary, jobs, table)
            return found
        return named | check(run, summary, jobs, table)
    except (WindtunnelError, OSError, KeyError, ValueError) as error:
        return named | {"error": str(error) or repr(error)}


def line_of(run: dict[str, Any]) -> str:
    """Return what one run came to, in one line."""
    within = "within" if run["within"] else "OUT OF"
    if "error" in run:
        text = f"NOT COMPARED: {run['error']}"
    elif "compared" in run:
        of = run["compared"]
        equal = of.get("job jct", {"equal": 0, "compared": 0})
        text = (
            f"jobs equal {equal['equal']:4} of {equal['compared']:4}; "
            f"mean {of['avg_jct']['difference']:+.2%}, "
            f"makespan {of['makespan']['difference']:+.2%}, {within} its band"
        )
    else:
        text = f"replayed: median error {run['median_error']:.2%}, P90 {run['p90_error']:.2%}, "
        text += f"{within} its band"
    if of := run.get("testbed"):
        text += f"; testbed: mean {of['avg_jct'][0]:+.2%}, makespan {of['makespan'][0]:+.2%}"
    return f"{run['run']:34} {text}\n"


def main(arguments: list[str]) -> int:
    """Check every run of a folder."""
    folders = [Path(word) for word in arguments if not word.startswith("--")]
    if len(folders) != 1 or not folders[0].is_dir():
        sys.exit("usage: check_runs.py FOLDER [--json]")
    root = folders[0].resolve()
    names = ("jobs.csv", "jobs.csv.gz", "summary.json")
    runs = sorted({path.parent for name in names for path in root.rglob(name)})
    if not runs:
        sys.exit(f"{root}: no run in it (a folder with jobs.csv or summary.json)")
    with tempfile.TemporaryDirectory() as scratch:
        found = [found_of(run, root, Path(scratch), flown=True) for run in runs]
    if "--json" in arguments:
        sys.stdout.write(json.dumps({"folder": root.name, "runs": found}, indent=1) + "\n")
    else:
        for run in found:
            sys.stdout.write(line_of(run))
    return 0 if all(run["within"] for run in found) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
