"""A what-if surface: each of its runs is the run that `simulate` makes, and wrong axes fail."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import windtunnel as wt
from windtunnel.errors import SpecError
from windtunnel.report.surface_page import page_data, surface_answer, surface_page
from windtunnel.study.resolving import conditions_of, resolved
from windtunnel.study.surface import BINS, MOST_RUNS, Point, Surface

BASE = resolved(conditions_of("6x8"))


def jobs(n: int = 200) -> Any:
    rng = np.random.default_rng(5)
    return wt.schema.as_jobs(
        {
            "submit_time": np.sort(rng.uniform(0, 40_000, n)),
            "duration": rng.exponential(3000, n),
            "num_gpus": rng.choice([1.0, 2.0, 8.0], n),
        }
    )


def stretched(table: Any, load: float, num_gpus: int) -> Any:
    """The same jobs at an offered load, by the definition in the docs."""
    submit, duration, gpus = (
        table[name].to_numpy() for name in ("submit_time", "duration", "num_gpus")
    )
    natural = (gpus * duration).sum() / (np.ptp(submit) * num_gpus)
    times = submit[0] + (submit - submit[0]) * natural / load
    return wt.schema.as_jobs({"submit_time": times, "duration": duration, "num_gpus": gpus})


def test_every_run_is_that_of_simulate() -> None:
    surface = Surface.parse("nodes=4..8/2,policy=fifo,sjf,load=0.7..0.9/0.1")
    points = surface.fly(jobs(), BASE)
    assert len(points) == 3 * 2 * 3
    assert surface.axes["load"] == (0.7, 0.8, 0.9)  # exact decimals, not sums of 0.1
    for point in points:
        at = point.position
        table = stretched(jobs(), float(at["load"]), 48)
        flown = wt.simulate(table, f"{at['nodes']}x8", at["policy"])
        metrics = flown.metrics()
        for name in ("avg_wait", "p90_wait", "utilization", "num_finished"):
            assert point.metrics[name] == pytest.approx(metrics[name], rel=1e-9)
        wait = flown.flight.start - flown.submit_time
        assert (point.waits[0], point.waits[-1]) == pytest.approx((wait.min(), wait.max()))
        assert len(point.queue) == BINS


def test_a_run_that_cannot_be_flown_is_kept_with_its_reason() -> None:
    surface = Surface.parse("policy=fifo,easy")
    points = surface.fly(jobs(), BASE)
    assert points[0].error == ""
    assert "estimate" in points[1].error
    trace = wt.open_trace("synthetic:kalos:jobs=50")
    answer = surface_answer(surface, points, trace, BASE, ())
    assert answer.headline.startswith("Of 1 run the shortest")
    assert answer.cautions[0].startswith("1 run could not be flown; the first: ")
    with pytest.raises(SpecError, match="no run can be flown"):
        Surface.parse("policy=easy").fly(jobs(), BASE)
    run = Surface.parse("policy=easy,estimates=perfect").fly(jobs(), BASE)[0]
    assert run.metrics["num_finished"] == 200


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nodes", "expected such as nodes="),
        ("node=1,2", "Did you mean 'nodes'"),
        ("nodes=1,nodes=2", "names nodes twice"),
        ("nodes=4,4", "each value once"),
        ("nodes=1.5", "whole numbers above 0"),
        ("nodes=0,1", "whole numbers above 0"),
        ("nodes=8..4/1", "from, to, step"),
        ("nodes=4..8/0", "from, to, step"),
        ("nodes=4..8/nan", "from, to, step"),
        ("load=0.8..1.2/inf", "from, to, step"),
        ("load=-inf..1/1", "from, to, step"),
        ("load=0..nan/1", "from, to, step"),
        ("load=inf", "expected numbers"),
        ("load=", "expected numbers"),
        ("policy=", "expected a word"),
        ("policy=sjff", "Did you mean 'sjf'"),
        ("nodes=1..99/1,seed=1..99/1", f"at most {MOST_RUNS:,}"),
        ("nodes=1..9e9/1", "from, to, step"),
    ],
)
def test_wrong_axes_are_refused(text: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        Surface.parse(text)


def test_the_largest_page_stays_below_two_megabytes() -> None:
    surface = Surface.parse("nodes=1..40/1,seed=0..49/1")
    metrics = wt.simulate(jobs(), "6x8").metrics()
    curve = tuple(np.linspace(0.0, 123_456.7, BINS).tolist())
    points = [Point(at, metrics, (*curve, 1.0), curve) for at in surface.positions]
    trace = wt.open_trace("synthetic:kalos:jobs=50")
    answer = surface_answer(surface, points, trace, BASE, ())
    page = surface_page(answer, surface, points, "windtunnel whatif")
    assert len(points) == MOST_RUNS
    assert len(page.encode()) < 2_000_000
    assert "http://www.w3.org/2000/svg" in page
    assert page.count("http") == page.count("http://www.w3.org/2000/svg") + page.count("http-equiv")


def test_names_cannot_leave_the_data() -> None:
    surface = Surface({"policy": ("</script><b>",)})
    point = Point({"policy": "</script><b>"}, {}, error="</script><img src=x>")
    assert page_data(surface, [point])["runs"][0]["error"].startswith("</script>")
    trace = wt.open_trace("synthetic:kalos:jobs=50")
    fine = Surface.parse("policy=fifo").fly(jobs(), BASE)
    answer = surface_answer(surface, fine, trace, BASE, ())
    page = surface_page(answer, surface, [point], "x")
    assert "<img" not in page
    assert page.count("</script>") == 2
