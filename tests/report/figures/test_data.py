"""The tables behind the figures, against eight jobs and three tasks counted by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from windtunnel.characterize.headlines import headlines
from windtunnel.report.figures.catalogue import FIGURES, collect, report
from windtunnel.report.figures.sources import Sources
from windtunnel.schema import as_jobs
from windtunnel.traces.trace import Trace, TraceMetadata

if TYPE_CHECKING:
    from collections.abc import Callable

    from windtunnel.report.figures.collecting import FigureData


def data(name: str, sources: Sources) -> FigureData:
    return FIGURES[name].plan.collect(sources)


def rows(name: str, sources: Sources, panel: str, trace: str = "hand") -> list[dict[str, Any]]:
    """Return a trace's rows in one panel of a figure."""
    table = data(name, sources).table
    assert table is not None
    kept = table.filter(pc.and_(pc.equal(table["panel"], panel), pc.equal(table["trace"], trace)))
    found: list[dict[str, Any]] = kept.to_pylist()
    return found


def curve(found: list[dict[str, Any]], value: str = "count") -> dict[float, Any]:
    return {row["x"]: row[value] for row in found}


def parts_of(name: str, sources: Sources) -> dict[tuple[str, str], tuple[int | None, int, str]]:
    """Return (title, trace) -> n, left out, why of every part."""
    parts = data(name, sources).parts
    return {(p.title, p.trace): (p.n, p.left_out, p.why) for p in parts}


def test_run_times_count_gpu_jobs_at_powers_of_two(both: Sources) -> None:
    found = rows("cdf_job_duration_util", both, "a")
    assert [row["x"] for row in found] == [2.0**k for k in range(22)]
    counts = curve(found)
    assert (counts[1], counts[2], counts[4], counts[64], counts[128]) == (1, 2, 3, 3, 4)
    assert counts[4096] == 4
    assert counts[8192] == 5
    assert (found[0]["n"], found[0]["left_out"], found[0]["unsized"]) == (5, 1, 1)
    assert found[0]["percent"] == pytest.approx(20.0)


def test_cpu_jobs_have_a_panel_of_their_own_up_to_nine_hours(both: Sources) -> None:
    found = rows("cdf_job_jobtime", both, "b")
    assert [row["x"] for row in found] == [2.0**k for k in range(16)]
    assert [row["count"] for row in found[:5]] == [0, 0, 0, 1, 1]
    assert parts_of("cdf_job_jobtime", both)["Run time of CPU jobs", "bare"] == (
        *(0, 0, "no CPU job has a run time"),
    )


def test_gpus_are_counted_and_weighted_with_run_time(both: Sources) -> None:
    jobs = curve(rows("cdf_job_gpunum", both, "a"))
    assert (jobs[0], jobs[1], jobs[2], jobs[4], jobs[8]) == (0, 3, 4, 5, 6)
    held = curve(rows("cdf_job_gpunum", both, "b"), "sum")
    # 0.5 x 5000 + 1 x 1 + 1 x 2, then 2 x 4, then 8 x 100.
    assert (held[1], held[2], held[8], held[1024]) == (2503.0, 2511.0, 3311.0, 3311.0)


def test_a_thinned_step_curve_keeps_every_step_and_every_power_of_two(both: Sources) -> None:
    found = rows("cdf_job_gpunum", both, "a")
    assert [row["x"] for row in found] == [0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1023, 1024]


def test_gpus_beyond_the_last_tick_are_noted(make_trace: Callable[..., Trace]) -> None:
    big = make_trace({"submit_time": [0, 0], "duration": [1, 1], "num_gpus": [2048, 1]})
    notes = data("cdf_job_gpunum", Sources.of([big])).notes
    assert "hand: 50 % of the jobs is of jobs with more than 1,024 GPUs." in notes


def test_states_follow_the_published_definition(both: Sources) -> None:
    jobs = {row["state"]: row["percent"] for row in rows("bar_job_state", both, "a")}
    assert jobs["completed"] == pytest.approx(100 * 2 / 6)
    assert jobs["cancelled"] == pytest.approx(100 / 6)
    assert jobs["failed"] == pytest.approx(100 * 2 / 6)  # failed and timeout
    assert jobs["running"] == pytest.approx(100 / 6)
    time = {row["state"]: row["percent"] for row in rows("bar_job_state", both, "b")}
    # Six GPU jobs, one of them without a run time: the legend says of how many each panel is.
    assert [rows("bar_job_state", both, panel)[0]["n"] for panel in "ab"] == [6, 5]
    assert time["completed"] == pytest.approx(100 * 801 / 3311)
    assert time["failed"] == pytest.approx(100 * 10 / 3311)
    assert time["cancelled"] == pytest.approx(100 * 2500 / 3311)


def test_a_trace_without_status_is_left_out_with_a_note(both: Sources) -> None:
    assert parts_of("bar_job_state", both)["Jobs by final state", "bare"] == (
        *(0, 0, "the trace tells no status"),
    )
    assert data("bar_job_state", both).table is not None


def test_treemap_shares_are_over_the_listed_workloads(both: Sources) -> None:
    jobs = {row["workload"]: row for row in rows("treemap_job_dist", both, "a")}
    assert {name: row["percent"] for name, row in jobs.items()} == {"eval": 60.0, "train": 40.0}
    assert jobs["eval"]["n"] == 5
    assert jobs["eval"]["left_out"] == 1
    time = rows("treemap_job_dist", both, "b")
    assert [(row["workload"], row["amount"]) for row in time] == [("eval", 2503), ("train", 808)]
    for row in time:
        assert row["width"] * row["height"] == pytest.approx(1.25 * row["percent"] / 100)


def test_run_times_and_waits_have_a_curve_a_workload(both: Sources) -> None:
    found = rows("cdf_job_duration_queue", both, "a")
    assert list(dict.fromkeys(row["workload"] for row in found)) == ["eval", "train"]
    waits = rows("cdf_job_duration_queue", both, "b")
    by_eval = curve([row for row in waits if row["workload"] == "eval"])
    assert (by_eval[1], by_eval[2], by_eval[32], by_eval[64]) == (1, 2, 2, 3)
    assert parts_of("cdf_job_duration_queue", both)["wait", "hand"] == (
        *(5, 1, "1 job without workload"),
    )


def test_box_plots_count_jobs_without_gpus_too(both: Sources) -> None:
    found = {row["workload"]: row for row in rows("box_gpu_num", both, "a")}
    assert (found["train"]["q1"], found["train"]["median"], found["train"]["q3"]) == (3.5, 5, 6.5)
    assert found["eval"]["n"] == 3
    assert found["eval"]["left_out"] == 1  # of unknown size


def test_arrivals_are_rates_of_the_hours_of_the_week(both: Sources) -> None:
    found = rows("jobs_over_week", both, "a")
    assert len(found) == 168
    assert [row["num_jobs"] for row in found[:3]] == [6, 1, 1]
    assert sum(row["num_jobs"] for row in found) == 8
    tasks = rows("jobs_over_week", both, "b")
    assert tasks[0]["count"] == 3


def test_requests_are_sums_of_what_is_asked_for(both: Sources) -> None:
    found = rows("requests_over_week", both, "a")
    gpus = {row["hour_of_week"]: row["rate"] for row in found}
    assert (found[0]["n"], found[0]["left_out"]) == (7, 1)  # one of unknown size
    assert gpus[0] == 1 + 1 + 2 + 8
    assert gpus[1] == 0.5
    assert gpus[2] == 4


def test_users_and_templates_are_counted(both: Sources) -> None:
    users = rows("jobs_per_user", both, "a")
    assert [row["count"] for row in users[:3]] == [0, 2, 3]  # b and c have 2 jobs, a has 3
    assert (users[0]["n"], users[0]["left_out"]) == (3, 1)
    runs = {row["runs"]: row["num_jobs"] for row in rows("recurrence", both, "a")}
    # t 3 runs, v 2, u 1, and one job without a template counts to its user b.
    assert (runs[1], runs[2], runs[3], runs[4]) == (7, 5, 3, 0)


def test_gangs_are_shares_of_tasks(both: Sources) -> None:
    shares = {row["size"]: row["task_share"] for row in rows("gang_size", both, "a")}
    assert shares[1] == 1.0
    assert shares[2] == pytest.approx(6 / 12)
    assert shares[4] == pytest.approx(4 / 12)


def test_waits_are_split_by_request_and_by_type(both: Sources) -> None:
    found = rows("wait_by_request", both, "a")
    sizes = {row["sharing"]: row["n"] for row in found}
    assert sizes == {"no GPU": 1, "[0.5, 1) GPU": 1, "1 GPU": 3, "> 1 GPU": 1, "not recorded": 1}
    types = {row["gpu_type"]: row["n"] for row in rows("wait_by_gpu_type", both, "a")}
    assert types == {"T4": 2, "V100": 2, "not recorded": 1}


def test_a_wait_is_compared_with_the_completion_time_by_half(both: Sources) -> None:
    found = rows("wait_by_half", both, "a")
    short = curve([row for row in found if row["half"] == "short"])
    # Run times 1, 2, 4, 8 | 9, 100, 5000: shares 0, 1/2, 1/2, 0 | 0, 1/11, 1/101.
    assert (short[0.0], short[0.48], short[0.5], short[1.0]) == (2, 2, 4, 4)
    long = curve([row for row in found if row["half"] == "long"])
    assert (long[0.0], long[0.02], long[0.1]) == (1, 2, 3)
    endless = {
        "submit_time": [0.0, 0.0, 0.0],
        "start_time": [1.0, 1.0, None],
        "end_time": [5.0, None, None],
        "duration": [4.0, 4.0, None],
        "num_gpus": [1.0, 1.0, 1.0],
    }
    gone = Trace(as_jobs(endless), TraceMetadata("gone", "made by hand", rows_read=3))
    (part,) = data("wait_by_half", Sources.of([gone])).parts
    assert (part.n, part.left_out) == (1, 2)
    assert part.why == "1 job without run time, 1 job without wait or end"


def test_classes_add_up_to_all_gpu_jobs(both: Sources) -> None:
    for panel in "ab":
        found = rows("job_share", both, panel)
        assert sum(row["num_jobs"] for row in found) == found[0]["n"] == 6
        assert sum(row["percent"] for row in found) == pytest.approx(100.0)


def test_completed_jobs_only_make_run_times_by_type(both: Sources) -> None:
    found = rows("runtime_by_gpu_type", both, "a")
    assert {row["gpu_type"]: row["n"] for row in found} == {"T4": 1, "V100": 1}
    _, left_out, why = parts_of("runtime_by_gpu_type", both)["run time by GPU type", "hand"]
    assert (left_out, why) == (4, "4 jobs that did not complete")


def test_requests_and_use_are_curves_over_tasks(both: Sources) -> None:
    found = rows("request_usage", both, "a")
    asked = curve([row for row in found if row["kind"] == "request"])
    used = curve([row for row in found if row["kind"] == "use"])
    assert (asked[4], asked[8], used[1], used[2], used[16]) == (1, 3, 1, 2, 3)
    kinds = {(row["resource"], row["kind"]) for row in rows("request_usage", both, "c")}
    assert kinds == {("mem", "request"), ("mem", "use"), ("gpu_mem", "use")}


def test_overuse_is_of_tasks_and_of_jobs(both: Sources) -> None:
    tasks = {row["resource"]: row["percent"] for row in rows("overuse", both, "a")}
    assert tasks["CPU"] == pytest.approx(100 / 3)
    assert tasks["GPU"] == pytest.approx(100 / 3)
    assert tasks["memory"] == 0.0
    jobs = {row["resource"]: row["percent"] for row in rows("overuse", both, "b")}
    assert jobs["CPU"] == 50.0  # job 1 uses 16 of 8; job 0 uses 3 of 12


@pytest.mark.slow
def test_overuse_of_jobs_is_that_of_the_headlines(hand: Trace) -> None:
    """The notebook's sums: a task of which any use is known counts, what is unknown of it as 0."""
    tasks: Any = hand.tasks
    for column, values in (
        ("cpus_used", [14.0, None, 8.0]),  # job 0: 14 of 12 cores, of 4 without the notebook's rule
        ("gpus_used", [None, None, None]),
    ):
        place = tasks.column_names.index(column)
        tasks = tasks.set_column(place, column, pa.array(values, pa.float64()))
    trace = replace(hand, tasks=tasks)
    sources = Sources.of([trace])
    found = {row["resource"]: row for row in rows("overuse", sources, "b")}
    by_key = {line.key: line for line in headlines(trace)}
    for name, key in (("CPU", "cpu"), ("memory", "mem")):
        headline = by_key[f"overuse_jobs_{key}"]
        assert headline.value is not None
        assert found[name]["percent"] == 100 * headline.value
        assert found[name]["n"] == headline.n == 2
    assert (found["CPU"]["over"], found["CPU"]["under"]) == (1, 0)  # job 1: 8 of 8
    assert set(found) == {"CPU", "memory"}  # nobody knows any use of GPUs: no bar, not 0 %
    assert any("as the published numbers are" in note for note in data("overuse", sources).notes)


def test_node_loads_and_network_are_curves(both: Sources) -> None:
    network = curve(rows("network_cpu", both, "a"))
    assert (network[1.0], network[8.0]) == (1, 3)  # 8 x 2^27 / 2^30 = 1 Gbit/s
    load = rows("network_cpu", both, "b")
    cpu = curve([row for row in load if row["metric"] == "machine_cpu"])
    assert (cpu[19.0], cpu[20.0], cpu[40.0]) == (0, 1, 3)


def test_sharing_saves_the_second_half_of_a_gpu(both: Sources) -> None:
    found = rows("sharing_savings", both, "a")
    at = {
        name: [row["gpus"] for row in found if row["curve"] == name]
        for name in ("without sharing", "as it was", "saved")
    }
    half = len(at["saved"]) // 2
    assert at["without sharing"][0] == 3.0
    assert at["as it was"][0] == 2.0
    assert at["saved"][0] == 1.0
    assert at["saved"][half + 1] == 0.0
    notes = data("sharing_savings", both).notes
    assert (
        "hand: at full hours sharing saves 25.0 % of the GPUs on average, 1 at its peak." in notes
    )
    assert any(note.startswith("hand: the curves are means over") for note in notes)


@pytest.mark.slow
def test_what_sharing_saves_in_words_is_the_headline(hand: Trace) -> None:
    """The curves are means over steps; the talk, and the headline, count at each full hour."""
    tasks: Any = hand.tasks
    begins = pa.array([0.0, 1800.0, 0.0])  # no GPU is shared at 0 h or 1 h, one is in between
    trace = replace(hand, tasks=tasks.set_column(4, "start_time", begins))
    sources = Sources.of([trace])
    saved = [
        row["gpus"] for row in rows("sharing_savings", sources, "a") if row["curve"] == "saved"
    ]
    assert max(saved) == 1.0
    found = {line.key: line.value for line in headlines(trace)}
    assert (found["sharing_saved"], found["sharing_peak"]) == (0.0, 0.0)
    notes = data("sharing_savings", sources).notes
    assert "hand: at full hours sharing saves 0.0 % of the GPUs on average, 0 at its peak." in notes


def test_workers_share_gpu_time(both: Sources) -> None:
    all_time = {row["workers"]: row["percent"] for row in rows("colocation", both, "a")}
    # n1: an hour with two, an hour with one; n2: an hour with one.
    assert all_time["1"] == pytest.approx(100 * 2 / 3)
    assert all_time["2"] == pytest.approx(100 / 3)
    busy = {row["workers"]: row["percent"] for row in rows("colocation", both, "b")}
    assert busy["2"] == 100.0  # 0.6 + 0.4


def test_allocation_is_the_mean_over_a_cells_time_and_nodes(both: Sources) -> None:
    kinds = rows("allocation_by_node", both, "a")
    first = {row["name"]: row["share"] for row in kinds if row["from"] == 0.0}
    assert first == {"A": 0.5, "B": 1.0}
    late = {
        row["name"]: row["share"] for row in kinds if row["from"] == max(r["from"] for r in kinds)
    }
    assert late == {"A": 0.25, "B": 0.0}
    nodes = rows("allocation_by_node", both, "b")
    assert {row["name"]: row["nodes"] for row in nodes} == {"n1": 1, "n2": 1}


def test_a_kind_of_node_tells_how_many_there_are(hand: Trace) -> None:
    nodes: Any = hand.nodes
    third = nodes.slice(0, 1).set_column(0, "node", pa.array(["n3"]))
    trace = replace(hand, nodes=pa.concat_tables([nodes, third]))
    kinds = {
        row["name"]: (row["nodes"], row["share"])
        for row in rows("allocation_by_node", Sources.of([trace]), "a")
        if row["from"] == 0.0
    }
    assert kinds == {"A": (2, 0.25), "B": (1, 1.0)}


@pytest.mark.slow
def test_every_figure_tells_every_trace_in_every_panel(both: Sources) -> None:
    for answer in report(collect(both, list(FIGURES.values()))):
        use = answer["name"] in ("cdf_resource_util", "cdf_temperature", "cdf_power")
        assert answer["drawn"] is not use
        titles = {part["title"] for part in answer["parts"]}
        for title in titles - {"GPU utilisation"}:
            traces = {part["trace"] for part in answer["parts"] if part["title"] == title}
            assert traces == ({"all"} if use else {"hand", "bare"})
        for part in answer["parts"]:
            assert part["panel"] or part["why"]
            assert bool(part["n"]) == bool(part["panel"])


def test_a_figure_for_nobody_has_a_reason(bare: Trace) -> None:
    sources = Sources.of([bare])
    found = data("request_usage", sources)
    assert found.table is None
    assert found.reason == "bare: the trace has no tasks table"
    assert data("cdf_power", sources).reason.startswith("all: utilisation is drawn from --util")


@pytest.mark.slow
def test_n_and_left_out_stand_in_every_row(both: Sources) -> None:
    for one in collect(both, list(FIGURES.values())):
        if one.data.table is not None:
            assert {"panel", "title", "trace", "n", "left_out"} <= set(one.data.table.column_names)
            assert one.data.table["n"].null_count == 0
            assert one.data.table["left_out"].null_count == 0


def test_rare_workloads_are_left_out_and_many_are_pooled(
    make_trace: Callable[..., Trace],
) -> None:
    names = ["big"] * 4000 + ["rare"] * 2 + [f"kind {i % 9}" for i in range(900)]
    trace = make_trace(
        {
            "submit_time": [0.0] * len(names),
            "duration": [10.0] * len(names),
            "num_gpus": [1.0] * len(names),
            "workload": names,
        }
    )
    sources = Sources.of([trace])
    found = rows("treemap_job_dist", sources, "a")
    assert len(found) == 8
    assert {row["workload"]: row["amount"] for row in found}["3 other kinds"] == 300
    assert sum(row["amount"] for row in found) == 4900
    assert found[0]["left_out"] == 2
    notes = data("treemap_job_dist", sources).notes
    assert any("the 2 jobs of workload rare are not drawn" in note for note in notes)
    assert any("the 3 smaller of 10 workloads are drawn as one" in note for note in notes)


def test_a_rare_workload_with_much_gpu_time_is_drawn(make_trace: Callable[..., Trace]) -> None:
    trace = make_trace(
        {
            "submit_time": [0.0] * 2001,
            "duration": [1.0] * 2000 + [1000.0],
            "num_gpus": [1.0] * 2000 + [8.0],
            "workload": ["small"] * 2000 + ["huge"],
        }
    )
    found = rows("treemap_job_dist", Sources.of([trace]), "b")
    assert [row["workload"] for row in found] == ["huge", "small"]


def test_the_sources_own_figures_are_drawn_where_there_are_any(
    make_trace: Callable[..., Trace], columns: Callable[[], dict[str, Any]]
) -> None:
    jobs = columns()
    jobs["source_duration"] = [8.0] * 8
    sources = Sources.of([make_trace(jobs)])
    counts = curve(rows("cdf_job_duration_util", sources, "a"))
    assert (counts[4], counts[8]) == (0, 6)
    notes = data("cdf_job_duration_util", sources).notes
    assert "hand: the run time is the source's own column, not recomputed from the times." in notes
    # GPU time too: 2.5 GPUs on the jobs of at most one, 17 on all (one has no run time of its own).
    held = rows("cdf_job_gpunum", sources, "b")
    assert curve(held, "sum")[1] == 8.0 * 2.5
    assert curve(held, "sum")[1024] == 8.0 * 16.5
    assert held[0]["n"] == 6
    notes = data("cdf_job_gpunum", sources).notes
    assert (
        "hand: GPU time is of the source's own run times, not recomputed from the times." in notes
    )


def test_a_name_that_says_that_there_is_none_is_a_name(make_trace: Callable[..., Trace]) -> None:
    odd = {
        "submit_time": [0.0] * 4,
        "start_time": [1.0] * 4,
        "duration": [1.0] * 4,
        "num_gpus": [1.0] * 4,
        "gpu_type": ["not recorded", "not recorded", None, "T4"],
        "workload": ["(none)", "(none)", None, "eval"],
    }
    sources = Sources.of([make_trace(odd)])
    shares = {row["class"]: row["num_jobs"] for row in rows("job_share", sources, "b")}
    assert shares == {"not recorded (2)": 2, "T4": 1, "not recorded": 1}
    waits = {row["gpu_type"]: row["n"] for row in rows("wait_by_gpu_type", sources, "a")}
    assert waits == shares
    runs = {row["workload"]: row["n"] for row in rows("cdf_job_duration_queue", sources, "a")}
    assert runs == {"(none) (2)": 2, "eval": 1}
    assert parts_of("cdf_job_duration_queue", sources)["run time", "hand"] == (
        *(3, 1, "1 job without workload"),
    )
