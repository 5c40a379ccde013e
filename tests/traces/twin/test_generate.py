"""`Twin.generate`: the source's statistics, the same bytes, any number of jobs."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from windtunnel.errors import SpecError
from windtunnel.traces import open_trace
from windtunnel.traces.trace import Trace
from windtunnel.traces.twin.fidelity import distance, fidelity
from windtunnel.traces.twin.fit import fit

if TYPE_CHECKING:
    from pathlib import Path

    from windtunnel.traces.twin.twin import Twin


@pytest.fixture(scope="module")
def kalos() -> Trace:
    return open_trace("synthetic:kalos", seed=7)


@pytest.fixture(scope="module")
def twin_of_kalos(kalos: Trace) -> Twin:
    return fit(kalos)


def floats(jobs: pa.Table, name: str) -> np.ndarray:
    return np.asarray(jobs[name].cast(pa.float64()).to_numpy())


def gpu_time(jobs: pa.Table) -> np.ndarray:
    return floats(jobs, "num_gpus") * floats(jobs, "duration")


def share_by(jobs: pa.Table, label: np.ndarray) -> dict[Any, float]:
    weight = gpu_time(jobs)
    return {x: float(weight[label == x].sum() / weight.sum()) for x in np.unique(label).tolist()}


def top_share(jobs: pa.Table, share: float) -> float:
    users, code = np.unique(np.array(jobs["user"].to_pylist()), return_inverse=True)
    ordered = np.sort(np.bincount(code, gpu_time(jobs)))[::-1]
    return float(ordered[: round(share * len(users))].sum() / ordered.sum())


def classes(jobs: pa.Table) -> np.ndarray:
    return np.ceil(np.log2(floats(jobs, "num_gpus"))).astype(int)


def names_by_count(jobs: pa.Table) -> dict[int, str]:
    """Workloads by their number of jobs, which is how a renamed one is known again."""
    return {n: name for name, n in Counter(jobs["workload"].to_pylist()).items()}


def test_counts_are_those_of_the_source(kalos: Trace, twin_of_kalos: Twin) -> None:
    twin = twin_of_kalos.generate()
    assert twin.jobs.num_rows == kalos.jobs.num_rows == twin.metadata.rows_read
    assert Counter(twin.jobs["status"].to_pylist()) == Counter(kalos.jobs["status"].to_pylist())
    ours, theirs = names_by_count(twin.jobs), names_by_count(kalos.jobs)
    assert set(ours) == set(theirs)
    for count, name in theirs.items():
        source, copy = (
            Counter(classes(jobs.filter(pc.equal(jobs["workload"], which))).tolist())
            for jobs, which in ((kalos.jobs, name), (twin.jobs, ours[count]))
        )
        # Classes of fewer than five jobs were put together with a neighbour.
        small = sum(n for n in source.values() if n < 5)
        assert all(abs(copy[size] - n) <= small for size, n in source.items() if n >= 5)


def test_run_times_and_waits_are_those_of_the_source(kalos: Trace, twin_of_kalos: Twin) -> None:
    twin = twin_of_kalos.generate(seed=3)
    for name in ("duration", "wait"):
        a, b = (
            floats(jobs, "start_time") - floats(jobs, "submit_time")
            if name == "wait"
            else floats(jobs, "duration")
            for jobs in (kalos.jobs, twin.jobs)
        )
        assert a.sum() == pytest.approx(b.sum(), rel=1e-6)
        apart = distance(a, b)
        assert apart is not None
        assert apart <= 1 / 32
        for q in (0.5, 0.9):
            assert np.quantile(b, q) == pytest.approx(np.quantile(a, q), rel=0.1)
    ours = names_by_count(twin.jobs)
    for count, kind in names_by_count(kalos.jobs).items():
        mine, theirs = (
            floats(jobs.filter(pc.equal(jobs["workload"], name)), "duration")
            for jobs, name in ((kalos.jobs, kind), (twin.jobs, ours[count]))
        )
        apart = distance(mine, theirs)
        assert apart is not None
        # A type of a handful of jobs is described by its mean alone.
        assert apart <= (1 / 32 + 2 / np.sqrt(count) if count > 32 * 5 else 1.0)
        assert theirs.sum() == pytest.approx(mine.sum(), rel=1e-6)


@pytest.mark.slow
def test_gpu_time_goes_to_the_same_strata_clusters_and_users(
    kalos: Trace, twin_of_kalos: Twin
) -> None:
    for seed in range(3):
        twin = twin_of_kalos.generate(seed=seed)
        assert gpu_time(twin.jobs).sum() == pytest.approx(gpu_time(kalos.jobs).sum(), rel=0.02)
        for column in ("workload", "vc"):
            ours, theirs = (
                sorted(share_by(jobs, np.array(jobs[column].to_pylist())).values())[::-1]
                for jobs in (twin.jobs, kalos.jobs)
            )
            assert np.abs(np.array(ours[:4]) - np.array(theirs[:4])).max() < 0.02
        ours_by_size = share_by(twin.jobs, classes(twin.jobs))
        for size, share in share_by(kalos.jobs, classes(kalos.jobs)).items():
            assert ours_by_size.get(size, 0.0) == pytest.approx(share, abs=0.02)
        for top in (0.05, 0.1, 0.2):
            near = 0.02 if top == 0.05 else 0.06
            assert top_share(twin.jobs, top) == pytest.approx(top_share(kalos.jobs, top), abs=near)


def test_arrivals_keep_days_and_hours_of_the_week(rich: Trace) -> None:
    twin = fit(rich).generate(seed=5)
    assert twin.metadata.epoch == "2001-01-01T00:00:00+00:00"
    ours, theirs = floats(twin.jobs, "submit_time"), floats(rich.jobs, "submit_time")
    # Time 0 of the source is Tuesday 0 h in Berlin: a day after the twin's Monday.
    assert 86_400 <= ours.min() < 2 * 86_400
    assert (ours == np.floor(ours)).all()
    days = [np.bincount(((t - o) // 86_400).astype(int)) for t, o in ((ours, 86_400), (theirs, 0))]
    assert len(days[0]) == len(days[1])
    assert np.abs(days[0] - days[1]).max() <= 10  # of 150: batches may step over midnight
    hours = [np.bincount((t // 3600).astype(int) % 24, minlength=24) for t in (ours, theirs)]
    assert np.abs(hours[0] - hours[1]).max() < 4 * np.sqrt(3000 / 24)


def test_a_daily_rhythm_comes_through() -> None:
    rng = np.random.default_rng(4)
    # Four weeks of office hours: Monday to Friday, 9 to 17 h; time 0 is taken for a Monday.
    day = rng.choice([d for d in range(28) if d % 7 < 5], 4000)
    submit = np.sort(day * 86_400 + rng.uniform(9, 17, 4000) * 3600)
    twin = fit({"submit_time": submit, "duration": np.ones(4000), "num_gpus": np.ones(4000)})
    times = floats(twin.generate().jobs, "submit_time")
    hour = times % 86_400 / 3600
    assert ((hour >= 9) & (hour < 17.1)).all()
    assert (times // 86_400 % 7 < 5).all()
    twice = floats(twin.generate(jobs=8000).jobs, "submit_time")
    assert (twice // 86_400 % 7 < 5).all()
    assert twice.max() / 86_400 == pytest.approx(52, abs=3)
    dense = floats(twin.generate(load=2.0).jobs, "submit_time")
    assert dense.max() / 86_400 == pytest.approx(13, abs=2)


def test_a_short_log_keeps_its_rate() -> None:
    submit = np.arange(1000) * 20.0  # five and a half hours of the first day
    columns = {"submit_time": submit, "duration": np.ones(1000), "num_gpus": np.ones(1000)}
    one_sweep = floats(fit(columns).generate().jobs, "submit_time")
    assert one_sweep.max() - one_sweep.min() == pytest.approx(20_000, rel=0.15)
    model = fit({**columns, "user": [f"u{n}" for n in range(1000)]})
    for options, length in (({}, 6.0), ({"jobs": 500}, 3.0), ({"load": 2.0}, 3.0),
                            ({"jobs": 500, "load": 0.5}, 6.0)):  # fmt: skip
        times = floats(model.generate(**options).jobs, "submit_time")
        assert times.max() / 3600 == pytest.approx(length, rel=0.1)


def test_batches_and_templates_recur() -> None:
    rng = np.random.default_rng(5)
    # 300 sweeps of 10 jobs a few seconds apart, a template each, and 1000 single jobs.
    starts = rng.uniform(0, 30 * 86_400, 300)
    sweep = (starts[:, None] + np.cumsum(rng.uniform(1, 5, (300, 10)), axis=1)).ravel()
    length = np.repeat(rng.lognormal(6, 2, 300), 10) * rng.lognormal(0, 0.1, 3000)
    columns = {
        "submit_time": np.concatenate([sweep, rng.uniform(0, 30 * 86_400, 1000)]),
        "duration": np.concatenate([length, rng.lognormal(6, 2, 1000)]),
        "num_gpus": np.ones(4000),
        "user": [f"s{n // 100}" for n in range(3000)] + [f"o{n % 25}" for n in range(1000)],
        "template": [f"t{n // 10}" for n in range(3000)] + [f"o{n}" for n in range(1000)],
    }
    model = fit(columns)
    assert model.templates is not None
    assert (model.templates.count, model.templates.size) == ([1000, 300], [1.0, 10.0])
    assert model.template_spread == pytest.approx(0.1, rel=0.1)
    twin = model.generate().jobs
    runs = Counter(twin["template"].to_pylist())
    assert Counter(runs.values()) == {1: 1000, 10: 300}
    submit, user = floats(twin, "submit_time"), np.array(twin["user"].to_pylist())
    order = np.lexsort((submit, user))
    close = (np.diff(submit[order]) <= 60) & (user[order][1:] == user[order][:-1])
    assert close.mean() == pytest.approx(2700 / 4000, abs=0.03)
    template = np.array(twin["template"].to_pylist())
    logs = np.log(floats(twin, "duration"))
    within = [logs[template == name].std() for name, count in runs.items() if count == 10]
    assert np.median(within) < 0.4 < logs.std()


def test_unknown_values_stay_unknown_as_often(rich: Trace) -> None:
    model = fit(rich)
    twin = model.generate(seed=2).jobs
    for name in twin.column_names:
        few = 5  # fewer are not published
        assert abs(twin[name].null_count - rich.jobs[name].null_count) < few, name
    ratio = floats(twin, "estimate") / floats(twin, "duration")
    ratio = ratio[np.isfinite(ratio)]
    assert ((ratio >= 1) & (ratio <= 5)).all()
    # A third each of the source's: 1, 1.5 and 4 times the run time.
    assert np.mean(ratio < 1.2) == pytest.approx(1 / 3, abs=0.05)
    per_gpu = floats(twin, "num_cpus") / floats(twin, "num_gpus")
    assert set(per_gpu.tolist()) == {12.0, 16.0}


def test_what_resuming_costs_is_kept_by_size() -> None:
    source = open_trace("synthetic:helios-venus:jobs=4000:seed=1")
    jobs = fit(source).generate(seed=2).jobs
    for gpus, cost in zip(
        jobs["num_gpus"].to_pylist(), jobs["restore_time"].to_pylist(), strict=True
    ):
        assert cost == (7 if gpus <= 1 else 30 if gpus <= 8 else 60)


def test_a_source_that_says_nothing_of_resuming_has_a_twin_that_says_nothing(rich: Trace) -> None:
    twin = fit(rich)
    assert "restore_time" not in twin.known
    assert "restore_time" not in twin.generate().jobs.column_names
    few = rich.jobs.append_column("restore_time", pa.array([5.0] * 4 + [None] * 2996))
    assert fit(Trace(few, rich.metadata)) == twin  # fewer than min_count jobs tell nothing


@pytest.mark.parametrize(("cost", "found"), [("soon", "soon"), ("-1", "row 1"), ("inf", "row 1")])
def test_no_cost_of_resuming(rich: Trace, cost: str, found: str) -> None:
    jobs = rich.jobs.append_column("restore_time", pa.array([cost, *["1"] * 2999]))
    with pytest.raises(SpecError, match=f"restore_time.*{found}"):
        fit(jobs)


def test_running_and_pending_jobs_keep_their_holes() -> None:
    n = 400
    state = np.array(["completed", "running", "pending", "cancelled"])[np.arange(n) % 4]
    submit, start = np.arange(n) * 60.0, np.arange(n) * 60.0 + 30
    began = (state != "pending") & (state != "cancelled")
    ended = state == "completed"
    columns = {
        "submit_time": submit,
        "start_time": pa.array(start, mask=~began),
        "end_time": pa.array(start + 100, mask=~ended),
        "duration": pa.array(np.full(n, 100.0), mask=~ended),
        "num_gpus": pa.array(np.ones(n), mask=state == "cancelled"),
        "status": state,
    }
    twin = fit(columns).generate().jobs
    known = Counter(
        zip(
            twin["status"].to_pylist(),
            *(twin[c].is_valid().to_pylist() for c in ("start_time", "end_time", "duration")),
            strict=True,
        )
    )
    assert known == {
        ("completed", True, True, True): 100,
        ("running", True, False, False): 100,
        ("pending", False, False, False): 100,
        ("cancelled", False, False, False): 100,
    }
    assert twin["num_gpus"].null_count == 100


def test_the_same_seed_gives_the_same_bytes(twin_of_kalos: Twin, tmp_path: Path) -> None:
    one, again, other = (twin_of_kalos.generate(jobs=500, seed=s) for s in (1, 1, 2))
    assert one.jobs.equals(again.jobs)
    assert not one.jobs.equals(other.jobs)
    assert one.metadata.settings == {"jobs": 500, "load": 1.0, "seed": 1}
    assert any("no row is a real job" in note for note in one.metadata.notes)
    assert one.jobs["job_id"][0].as_py() == "twin-001"


@pytest.mark.parametrize("jobs", [1, 2, 7, 1000])
def test_any_number_of_jobs(rich: Trace, jobs: int) -> None:
    twin = fit(rich).generate(jobs=jobs)
    assert twin.jobs.num_rows == jobs
    sizes = np.mean(floats(twin.jobs, "num_gpus"))
    if jobs == 1000:
        assert sizes == pytest.approx(np.mean(floats(rich.jobs, "num_gpus")), rel=0.02)


@pytest.mark.parametrize(
    ("options", "word"),
    [({"jobs": 0}, "jobs"), ({"jobs": 10**9}, "jobs"), ({"load": 0}, "load"),
     ({"load": 1e-9}, "last more than"),
     ({"load": float("nan")}, "load"), ({"seed": -1}, "seed"), ({"jobs": 1.5}, "whole number")],
)  # fmt: skip
def test_wrong_options_are_refused(rich: Trace, options: dict[str, Any], word: str) -> None:
    with pytest.raises(SpecError, match=word):
        fit(rich).generate(**options)


def test_fidelity_tells_both_sides(rich: Trace) -> None:
    rows = {row["measure"]: row for row in fidelity(rich.jobs, rich.jobs).to_pylist()}
    duration = floats(rich.jobs, "duration")
    assert rows["jobs"]["source"] == rows["jobs"]["twin"] == 3000
    assert rows["run time, P90"]["source"] == pytest.approx(np.quantile(duration, 0.9))
    assert rows["GPU time"]["source"] == pytest.approx(gpu_time(rich.jobs).sum())
    assert rows["run time: distance of distributions"]["twin"] == 0.0
    assert rows["GPU time of the top 5 % of users"]["twin"] == pytest.approx(
        top_share(rich.jobs, 0.05)
    )
    shifted = rich.jobs.slice(0, 1500)
    apart = {row["measure"]: row for row in fidelity(shifted, rich.jobs).to_pylist()}
    assert apart["jobs"]["source"] == 1500
    assert 0 < apart["run time: distance of distributions"]["twin"] < 0.1


def test_a_real_trace_with_few_columns(data_dir: Path) -> None:
    source = open_trace(str(data_dir / "philly" / "philly_sia.csv.gz"), format="philly")
    model = fit(source)
    assert len(model.strata) == 7
    twin = model.generate()
    assert twin.jobs.num_rows == 82_247
    for name in ("user", "start_time", "status"):
        assert twin.jobs[name].null_count == 82_247
    rows = {row["measure"]: row for row in fidelity(source.jobs, twin.jobs).to_pylist()}
    assert rows["GPU time"]["twin"] == pytest.approx(rows["GPU time"]["source"], rel=0.005)
    assert rows["run time: distance of distributions"]["twin"] < 1 / 32
    assert rows["jobs on the busiest day"]["twin"] == pytest.approx(
        rows["jobs on the busiest day"]["source"], rel=0.1
    )
    ours, theirs = (
        sorted(share_by(jobs, np.array(jobs["vc"].to_pylist())).values())[::-1][:10]
        for jobs in (twin.jobs, source.jobs)
    )
    assert np.abs(np.array(ours) - np.array(theirs)).max() < 0.02
