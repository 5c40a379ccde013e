"""Full-size synthetic Philly and Helios meet what was published."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from windtunnel.traces.synthetic.generate import generate
from windtunnel.traces.synthetic.published import published
from windtunnel.traces.synthetic.size_facts import SizeFacts

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

pytestmark = pytest.mark.slow

CLUSTERS = ("helios-venus", "helios-earth", "helios-saturn", "helios-uranus")
#: Percent of the GPU time: the published curves have six decimals.
CDF_DIGITS = 1e-6
#: Percent: Philly's size CDF was read from a simplified curve.
PHILLY_CDF = 0.05


@dataclass(frozen=True)
class Sized:
    """A trace's columns as numpy arrays, those of the GPU jobs apart from the CPU jobs'."""

    facts: SizeFacts
    jobs: pa.Table
    on_gpu: NDArray[np.bool_]

    def column(self, name: str) -> NDArray[np.float64]:
        return self.jobs[name].to_numpy()[self.on_gpu]

    @property
    def queue(self) -> NDArray[np.float64]:
        return self.column("start_time") - self.column("submit_time")

    @property
    def gpu_time(self) -> NDArray[np.float64]:
        return self.column("duration") * self.column("num_gpus")

    def of_cpu_jobs(self, name: str) -> NDArray[np.float64]:
        return self.jobs[name].to_numpy(zero_copy_only=False)[~self.on_gpu]


@lru_cache(maxsize=6)
def _sized(name: str, seed: int) -> Sized:
    facts = published(name)
    assert isinstance(facts, SizeFacts)
    jobs = generate(name, seed=seed, cpu_jobs=True).jobs
    return Sized(facts, jobs, jobs["num_gpus"].to_numpy() > 0)


@pytest.fixture(
    params=[("philly", 0), ("philly", 11), *((name, 0) for name in CLUSTERS)],
    scope="module",
    ids=lambda p: f"{p[0]}-{p[1]}",
)
def sized(request: pytest.FixtureRequest) -> Sized:
    """A trace of the real size, CPU jobs included."""
    return _sized(*request.param)


@pytest.fixture(params=CLUSTERS, scope="module")
def cluster(request: pytest.FixtureRequest) -> Sized:
    """A cluster of Helios of the real size, CPU jobs included."""
    return _sized(request.param, 0)


def counts_up_to(values: NDArray[np.float64], knots: int) -> list[int]:
    return [int((values <= 2**k).sum()) for k in range(knots)]


#: Published median and mean run time, mean wait, mean GPUs, longest run (None: not apart), shares
#: of the GPU jobs completed, cancelled, failed.
SUMMARY = {
    "philly": (874, 18006.055, 189, 3760.604, 1.928, (0.604, 0.090, 0.305)),
    "helios-venus": (204, 13040.598, 0, 1253.288, 6.736, (0.526, 0.272, 0.202)),
    "helios-earth": (234, 5130.609, 0, 319.483, 2.101, (0.735, 0.136, 0.129)),
    "helios-saturn": (124, 5252.927, 0, 611.561, 4.010, (0.582, 0.272, 0.145)),
    "helios-uranus": (280, 9163.725, 0, 1949.182, 4.038, (0.607, 0.201, 0.192)),
}
GPU_SECONDS = {
    "philly": (2210176414, 2025326056, 2659215061),
    "helios-venus": (6373315670, 4920266598, 1052030340),
    "helios-earth": (5713038873, 4793853520, 932310362),
    "helios-saturn": (14375709962, 10733792235, 2542859066),
    "helios-uranus": (13532231815, 10267196772, 2761134934),
}
STATES = ("completed", "cancelled", "failed")


def test_every_duration_knot_is_exact(sized: Sized) -> None:
    assert counts_up_to(sized.column("duration"), 22) == sized.facts.duration.counts
    if sized.facts.cpu is not None:
        assert counts_up_to(sized.of_cpu_jobs("duration"), 22) == sized.facts.cpu.counts


def test_means_and_medians_are_the_published_ones(sized: Sized) -> None:
    median, mean, median_wait, mean_wait, gpus, _ = SUMMARY[sized.facts.trace.cluster]
    assert np.median(sized.column("duration")) == median
    assert sized.column("duration").mean() == pytest.approx(mean, abs=5.1e-4)
    assert np.median(sized.queue) == median_wait
    assert sized.queue.mean() == pytest.approx(mean_wait, abs=5.1e-4)
    assert sized.column("num_gpus").mean() == pytest.approx(gpus, abs=5.1e-4)
    assert np.median(sized.column("num_gpus")) == 1


def test_gpu_time_of_every_state_is_exact_and_jobs_to_the_digit(sized: Sized) -> None:
    name = sized.facts.trace.cluster
    status = sized.jobs["status"].to_numpy(zero_copy_only=False)[sized.on_gpu]
    for state, seconds, share in zip(STATES, GPU_SECONDS[name], SUMMARY[name][-1], strict=True):
        assert int(sized.gpu_time[status == state].sum()) == seconds
        assert (status == state).mean() == pytest.approx(share, abs=5.1e-4)


def test_values_stay_within_the_limits(sized: Sized) -> None:
    trace = sized.facts.trace
    duration, queue = sized.column("duration"), sized.queue
    assert (duration == np.floor(duration)).all()
    assert duration.min() >= 1
    assert duration.max() <= trace.max_duration
    assert (queue == np.floor(queue)).all()
    assert 0 <= queue.min() <= queue.max() <= trace.max_queue


@pytest.mark.parametrize("measure", ["jobs", "gpu_time"])
def test_size_cdf(sized: Sized, measure: str) -> None:
    gpus = sized.column("num_gpus")
    weight = np.ones_like(gpus) if measure == "jobs" else sized.gpu_time
    tolerance = PHILLY_CDF if sized.facts.trace.cluster == "philly" else CDF_DIGITS
    cdf = sized.facts.size_cdf
    for limit, expected in zip(cdf.gpus, getattr(cdf, measure), strict=True):
        reached = 100.0 * weight[gpus <= limit].sum() / weight.sum()
        assert reached == pytest.approx(expected, abs=tolerance, rel=0), limit


def test_philly_has_its_longest_and_largest_jobs() -> None:
    philly = _sized("philly", 0)
    assert philly.column("duration").max() == 4_240_676
    assert philly.column("num_gpus").max() == 128
    assert philly.jobs.num_rows == 112_956


def test_philly_virtual_clusters_and_calendar() -> None:
    philly = _sized("philly", 0)
    facts, count = philly.facts, philly.jobs.num_rows
    vc = philly.jobs["vc"].to_numpy(zero_copy_only=False)
    weight = philly.gpu_time
    listed = zip(facts.vcs.names, facts.vcs.jobs, facts.vcs.gpu_time, strict=True)
    for name, jobs, gpu_time in listed:
        share = jobs / sum(facts.vcs.jobs)
        assert abs((vc == name).sum() - share * count) < 1
        reached = 100 * weight[vc == name].sum() / weight.sum()
        assert reached == pytest.approx(gpu_time / sum(facts.vcs.gpu_time) * 100, abs=0.2), name
    # A user belongs to one virtual cluster.
    user = philly.jobs["user"].to_numpy(zero_copy_only=False)
    pairs = {tuple(pair) for pair in zip(user.tolist(), vc.tolist(), strict=True)}
    assert len(pairs) == len(set(user.tolist()))
    local = local_times(philly)
    hours = np.bincount(local.astype("datetime64[h]").astype(int) % 24, minlength=24)
    shares = np.array(facts.calendar.hours) / sum(facts.calendar.hours)
    assert (np.abs(hours - shares * count) < 1).all()
    # 1 January 1970 was a Thursday.
    days = np.bincount((local.astype("datetime64[D]").astype(int) + 3) % 7, minlength=7)
    shares = np.array(facts.calendar.weekdays) / sum(facts.calendar.weekdays)
    assert (np.abs(days - shares * count) < 1).all()
    assert local.min() >= np.datetime64("2017-08-07")
    assert local.max() < np.datetime64("2017-12-23")


def local_times(sized: Sized) -> NDArray[np.datetime64]:
    """Return the local wall-clock time of every submission of a GPU job."""
    trace = sized.facts.trace
    epoch = np.datetime64(trace.epoch.removesuffix("+00:00"), "s")
    instants = epoch + sized.column("submit_time").astype("timedelta64[s]")
    zoned = pa.array(instants).cast(pa.timestamp("s", tz="UTC")).cast(pa.timestamp("s", trace.zone))
    return np.asarray(pc.local_timestamp(zoned).to_numpy(), dtype="datetime64[s]")


#: CPU jobs: mean and median run time, mean wait, shares of the states.
CPU_SUMMARY = {
    "helios-venus": (1649.859, 21, 773.009, (0.86, 0.097, 0.043)),
    "helios-earth": (162.730, 1, 3.281, (0.885, 0.005, 0.11)),
    "helios-saturn": (619.062, 2, 16.255, (0.943, 0.019, 0.037)),
    "helios-uranus": (1211.799, 32, 119.704, (0.791, 0.116, 0.092)),
}


def test_cpu_jobs_of_helios(cluster: Sized) -> None:
    mean, median, wait, shares = CPU_SUMMARY[cluster.facts.trace.cluster]
    duration = cluster.of_cpu_jobs("duration")
    assert len(duration) == cluster.facts.trace.cpu_jobs
    assert duration.mean() == pytest.approx(mean, abs=5.1e-4)
    assert np.median(duration) == median
    queue = cluster.of_cpu_jobs("start_time") - cluster.of_cpu_jobs("submit_time")
    assert queue.mean() == pytest.approx(wait, abs=5.1e-4)
    assert np.median(queue) == 0
    status = cluster.of_cpu_jobs("status")
    for state, share in zip(STATES, shares, strict=True):
        assert (status == state).mean() == pytest.approx(share, abs=5.1e-4)


def test_months_and_hours_of_helios_are_exact(cluster: Sized) -> None:
    calendar, local = cluster.facts.calendar, local_times(cluster)
    gpus = cluster.column("num_gpus")
    inside = local < np.datetime64("2020-09-29")
    assert local.min() >= np.datetime64("2020-04-01")
    assert local.max() < np.datetime64("2020-09-30")
    month = local.astype("datetime64[M]").astype(str)
    for name, (single, more) in calendar.months.items():
        here = inside & (month == name)
        assert (int((here & (gpus == 1)).sum()), int((here & (gpus > 1)).sum())) == (single, more)
    hour = local[inside].astype("datetime64[h]").astype(int) % 24
    assert np.bincount(hour, minlength=24).tolist() == calendar.hours


def test_the_busiest_users_of_helios_have_their_shares(cluster: Sized) -> None:
    users = cluster.facts.users
    names, user = np.unique(
        cluster.jobs["user"].to_numpy(zero_copy_only=False), return_inverse=True
    )
    assert len(names) == users.number
    cpu_time = (cluster.jobs["duration"].to_numpy() * cluster.jobs["num_cpus"].to_numpy())[
        ~cluster.on_gpu
    ]
    for published_share, of, weight in (
        (users.gpu_time, cluster.on_gpu, cluster.gpu_time),
        (users.gpu_queue, cluster.on_gpu, cluster.queue),
        (users.cpu_time, ~cluster.on_gpu, cpu_time),
    ):
        had = np.sort(np.bincount(user[of], weight, len(names)))[::-1]
        for percent, expected in zip(users.top_percent, published_share, strict=True):
            top = had[: round(percent * len(names) / 100)].sum()
            assert 100 * top / had.sum() == pytest.approx(expected, abs=0.02)


@pytest.fixture(scope="module")
def helios() -> pa.Table:
    """The four clusters of Helios together, GPU jobs."""
    return generate("helios").jobs


def test_helios_is_its_clusters_together(helios: pa.Table) -> None:
    assert helios.num_rows == 1_580_464
    duration = helios["duration"].to_numpy()
    total = np.sum([published(name).duration.counts for name in CLUSTERS], axis=0)
    assert counts_up_to(duration, 22) == total.tolist()
    assert duration.mean() == pytest.approx(6651.681, abs=1e-3)
    assert np.median(duration) == 206
    assert duration.max() == 4_320_009
    queue = helios["start_time"].to_numpy() - helios["submit_time"].to_numpy()
    assert queue.mean() == pytest.approx(862.047, abs=1e-3)
    gpus = helios["num_gpus"].to_numpy()
    assert gpus.mean() == pytest.approx(3.716, abs=5e-4)
    assert gpus.max() == 2048
    assert (np.diff(helios["submit_time"].to_numpy()) >= 0).all()
    venus = helios.filter(np.array(helios["cluster"].to_numpy(zero_copy_only=False) == "Venus"))
    alone = generate("helios-venus").jobs
    for column in ("submit_time", "duration", "num_gpus", "user", "status", "template"):
        assert venus[column].to_pylist() == alone[column].to_pylist(), column
    assert venus["job_id"][0].as_py() == f"Venus/{alone['job_id'][0].as_py()}"
    assert venus["vc"][0].as_py() == f"Venus/{alone['vc'][0].as_py()}"


#: Percent completed, cancelled, failed of the jobs of so many GPUs, the clusters pooled (SC'21).
BY_SIZE = {
    (1, 1): (66.807, 18.472, 14.721),
    (2, 2): (40.527, 32.457, 27.016),
    (4, 4): (57.599, 19.370, 23.031),
    (8, 8): (55.073, 29.244, 15.683),
    (16, 16): (42.829, 46.265, 10.906),
    (32, 32): (43.946, 41.056, 14.998),
    (64, 2048): (21.278, 68.501, 10.221),
}


def test_states_by_size_of_helios(helios: pa.Table) -> None:
    gpus = helios["num_gpus"].to_numpy()
    status = helios["status"].to_numpy(zero_copy_only=False)
    for (low, high), shares in BY_SIZE.items():
        mine = status[(gpus >= low) & (gpus <= high)]
        for state, share in zip(STATES, shares, strict=True):
            # No whole numbers of the 6,213 jobs with 64 GPUs and more round to all three shares.
            assert 100 * (mine == state).mean() == pytest.approx(share, abs=5.5e-4), (low, state)


@pytest.mark.data
def test_every_published_point_of_philly_and_helios(
    sized: Sized,
    acme_rows: Callable[[str], list[dict[str, str]]],
    helios_rows: Callable[[str], list[dict[str, str]]],
) -> None:
    name = sized.facts.trace.cluster.removeprefix("helios-").capitalize()
    gpus, duration = sized.column("num_gpus"), sized.column("duration")
    values = {
        "gpu_job_duration": duration,
        "gpu_duration": duration,
        "gpu_num_jobs": gpus,
        "cpu_duration": sized.of_cpu_jobs("duration"),
    }
    seen = 0
    for row in acme_rows("figure_cdf_points.csv"):
        if row["cluster"] == name:
            count = int((values[row["figure"]] <= int(row["x_seconds"])).sum())
            assert count == int(row["count_le_x"]), row
            seen += 1
    for row in helios_rows("figure_cdf_points.csv"):
        if row["cluster"] != name or row["figure"] == "gpu_duration_compare":
            continue
        if row["figure"] == "gpu_num_gpu_time":
            share = 100 * sized.gpu_time[gpus <= int(row["x"])].sum() / sized.gpu_time.sum()
            assert share == pytest.approx(float(row["cdf_percent"]), abs=CDF_DIGITS, rel=0), row
        else:
            count = int((values[row["figure"]] <= int(row["x"])).sum())
            assert count == int(row["count_le_x"]), row
        seen += 1
    assert seen == (22 if name == "Philly" else 70)


@pytest.mark.data
def test_calendar_and_users_of_helios_are_the_published_ones(
    cluster: Sized, helios_rows: Callable[[str], list[dict[str, str]]]
) -> None:
    name = cluster.facts.trace.cluster.removeprefix("helios-").capitalize()
    calendar, users = cluster.facts.calendar, cluster.facts.users
    measures = {"gpu_jobs_single": 0, "gpu_jobs_multi": 1}
    for row in helios_rows("figure_monthly.csv"):
        if row["cluster"] == name and row["measure"] in measures:
            assert calendar.months[row["month"]][measures[row["measure"]]] == float(row["value"])
    for row in helios_rows("figure_diurnal.csv"):
        if row["cluster"] == name and row["measure"] == "gpu_jobs_submitted_per_hour":
            mean = calendar.hours[int(row["hour"])] / 181
            assert mean == pytest.approx(float(row["value"]), abs=2e-4)
    shares = {
        "gpu_time": users.gpu_time,
        "cpu_time": users.cpu_time,
        "gpu_queue_time": users.gpu_queue,
    }
    rows = [r for r in helios_rows("figure_user_concentration.csv") if r["cluster"] == name]
    for measure, share in shares.items():
        mine = [float(r["share_percent"]) for r in rows if r["measure"] == measure]
        assert mine == share


@pytest.mark.data
def test_pooled_points_of_helios(
    helios: pa.Table, acme_rows: Callable[[str], list[dict[str, str]]]
) -> None:
    duration, gpus = helios["duration"].to_numpy(), helios["num_gpus"].to_numpy()
    for row in acme_rows("figure_cdf_points.csv"):
        if row["cluster"] == "Helios" and row["figure"] == "gpu_job_duration":
            assert int((duration <= int(row["x_seconds"])).sum()) == int(row["count_le_x"]), row
    weight = {"jobs": np.ones_like(gpus), "gpu_time": gpus * duration}
    for row in acme_rows("figure_gpu_num_cdf.csv"):
        if row["cluster"] == "Helios":
            mine = weight[row["measure"]]
            share = 100 * mine[gpus <= int(row["gpu_num_le"])].sum() / mine.sum()
            assert share == pytest.approx(float(row["cdf_percent_approx"]), abs=0.05), row
