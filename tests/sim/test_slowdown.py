"""Slow-downs worked by hand: sharing, spreading, racks, contention for cores; the model's words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import windtunnel as wt
from windtunnel.sim.factor_tables import (
    ShareFactor,
    SpreadFactor,
    read_share,
    read_spread,
    write_factors,
)

if TYPE_CHECKING:
    from pathlib import Path

PAIR = wt.Slowdown(share_by=(ShareFactor("a", "b", 0.8, 0.7),))


def column(out: wt.Outcome, name: str) -> list[Any]:
    values: list[Any] = out.table[name].to_pylist()
    return values


def test_two_jobs_share_a_gpu_from_the_second_one_on() -> None:
    # a works 4 s alone, then its other 6 s at 0.8: ends at 4 + 7.5 = 11.5. Until then b has done
    # 7.5 x 0.7 = 5.25 of its 7 s; the other 1.75 s it is alone: 13.25.
    jobs = {
        "submit_time": [0.0, 4.0],
        "duration": [10.0, 7.0],
        "num_gpus": [0.5, 0.5],
        "workload": ["a", "b"],
    }
    out = wt.simulate(jobs, "1x1", slowdown=PAIR)
    assert column(out, "end_time") == [11.5, 13.25]
    assert column(out, "slowdown_time") == pytest.approx([1.5, 2.25])
    metrics = out.metrics()
    assert metrics["lost_to_slowdown"] == pytest.approx(0.5 * 1.5 + 0.5 * 2.25)
    assert metrics["gpu_time"] == 0.5 * 11.5 + 0.5 * 9.25
    assert metrics["avg_rate"] == pytest.approx((10 + 7) / (11.5 + 9.25))
    assert out.settings["engine"] == "compiled"
    # On different GPUs they do not meet.
    apart = wt.simulate(jobs, "1x2", placement="worst_fit", slowdown=PAIR)
    assert column(apart, "nodes") == [[0], [0]]
    assert column(apart, "end_time") == [11.5, 13.25]  # the smallest free part that suffices
    away = wt.simulate(jobs, "2x1", placement="worst_fit", slowdown=PAIR)
    assert column(away, "end_time") == [10, 11]
    assert away.metrics()["lost_to_slowdown"] == 0
    assert away.metrics()["avg_rate"] == 1


def test_the_other_way_round_each_keeps_its_own_rate() -> None:
    jobs = {"submit_time": [0.0, 4.0], "duration": [7.0, 100.0], "num_gpus": [0.5, 0.5],
            "template": ["b", "a"]}  # fmt: skip
    # b: 4 s alone, 3 s at 0.7.
    out = wt.simulate(jobs, "1x1", slowdown=PAIR)
    assert column(out, "end_time")[0] == pytest.approx(4 + 3 / 0.7)


def test_three_on_a_gpu_add_up_what_each_costs() -> None:
    # Each halves the rate of the others: three get a third each, two a half.
    jobs = {"submit_time": [0.0, 0.0, 0.0], "duration": [2.0, 2.0, 5.0], "num_gpus": [0.3] * 3}
    out = wt.simulate(jobs, "1x1", slowdown="share=0.5")
    assert column(out, "end_time") == pytest.approx([6.0, 6.0, 9.0])


def test_tasks_of_one_job_do_not_slow_each_other_and_a_gang_goes_at_its_slowest() -> None:
    jobs = {
        "submit_time": [0.0, 0.0],
        "duration": [8.0, 3.0],
        "num_gpus": [1.2, 0.3],
        "num_tasks": [4, 1],  # three tasks on GPU 0, one on GPU 1, where b joins it
    }
    out = wt.simulate(jobs, "1x2", slowdown="share=0.5")
    assert out.segments["devices"].to_pylist()[0] == [[0, 1]]
    # b runs at 0.5 for 6 s; a does 3 of its 8 s meanwhile, and goes on alone.
    assert column(out, "end_time") == pytest.approx([11.0, 6.0])
    # With b first, on GPU 0, two tasks of a join it there, and two have GPU 1 to themselves.
    turned = {name: values[::-1] for name, values in jobs.items()}
    out = wt.simulate(turned, "1x2", slowdown="share=0.5")
    assert out.segments["devices"].to_pylist() == [[[0]], [[0, 1]]]
    assert column(out, "end_time") == pytest.approx([6.0, 11.0])


def test_a_gang_over_more_nodes_than_it_needs() -> None:
    # Two tasks of two GPUs fit one node of four; filling the emptier ones first splits them.
    jobs = {
        "submit_time": [0.0, 0.0, 1.0],
        "duration": [100.0, 100.0, 42.0],
        "num_gpus": [2.0, 2.0, 4.0],
        "num_tasks": [1, 1, 2],
    }
    options: dict[str, Any] = {"placement": "most_idle:gang=fill"}
    out = wt.simulate(jobs, "2x4", slowdown="spread", **options)
    assert column(out, "nodes") == [[0], [1], [0, 1]]
    assert column(out, "end_time")[2] == pytest.approx(1 + 42 / 0.42)
    table = wt.Slowdown(spread=0.9, spread_by=(SpreadFactor("LM", 4.0, 0.21),))
    named = {**jobs, "workload": [None, None, "LM"]}
    out = wt.simulate(named, "2x4", slowdown=table, **options)
    assert column(out, "end_time")[2] == pytest.approx(1 + 42 / 0.21)
    (note,) = out.notes
    assert note.startswith("2 jobs of several GPUs have no row in the table of spread factors")
    assert note.endswith("where they are spread their rate is 0.9.")
    other = wt.Slowdown(spread=0.6, spread_by=(SpreadFactor("LM", 2.0, 0.21),))
    out = wt.simulate(named, "2x4", slowdown=other, **options)
    assert column(out, "end_time")[2] == pytest.approx(1 + 42 / 0.6)
    # A gang that needs two nodes is not spread over two.
    big = {"submit_time": [0.0], "duration": [10.0], "num_gpus": [8.0]}
    assert column(wt.simulate(big, "2x4", slowdown="spread"), "end_time") == [10]


def test_a_gang_over_more_racks_than_it_needs() -> None:
    # Racks (0, 1) and (2, 3). Node 0 is taken: two whole nodes are 1 and 2, over both racks.
    cluster = wt.ClusterSpec.uniform(4, 4, nodes_per_rack=2)
    jobs = {"submit_time": [0.0, 0.0], "duration": [50.0, 8.0], "num_gpus": [4.0, 8.0]}
    out = wt.simulate(jobs, cluster, slowdown="rack=0.8")
    assert column(out, "nodes") == [[0], [1, 2]]
    assert column(out, "end_time") == [50, 10]
    kept = wt.simulate(jobs, cluster, placement="best_fit:topology=rack", slowdown="rack=0.8")
    assert column(kept, "nodes") == [[0], [2, 3]]
    assert column(kept, "end_time") == [50, 8]
    whole = {"submit_time": [0.0], "duration": [8.0], "num_gpus": [12.0]}
    assert column(wt.simulate(whole, cluster, slowdown="rack=0.8"), "end_time") == [8]


def test_cores_of_others_slow_a_job_in_proportion() -> None:
    # Ten cores. b holds 5 of them from 0 to its end: a runs at 1 - 0.28 x 5/10 = 0.86; b at
    # 1 - 0.28 x 2/10 = 0.944.
    cluster = wt.ClusterSpec.uniform(1, 4, cpus_per_node=10)
    jobs = {
        "submit_time": [0.0, 0.0],
        "duration": [20.0, 9.44],
        "num_gpus": [1.0, 1.0],
        "num_cpus": [2.0, 5.0],
    }
    out = wt.simulate(jobs, cluster, slowdown="cpu")
    # b ends at 10; a has done 8.6 by then, and does the other 11.4 alone.
    assert column(out, "end_time") == pytest.approx([21.4, 10.0])
    # Where cores do not constrain, more may be promised than there are: 28 % is the most.
    crowd = {**jobs, "num_cpus": [2.0, 500.0], "duration": [7.2, 1000.0]}
    out = wt.simulate(crowd, cluster, slowdown="cpu", resources="gpus")
    assert column(out, "end_time")[0] == pytest.approx(10.0)


def test_a_preempted_job_keeps_the_work_that_it_did() -> None:
    # Work done by 4: 2 alone and 2 at 0.5: 3 of 10. At 4 c takes the GPU for 2 s. Then 1 s to
    # restore, and both go on at 0.5; b has done 1 of its 20 s.
    jobs = {
        "submit_time": [0.0, 2.0, 4.0],
        "duration": [10.0, 20.0, 2.0],
        "num_gpus": [0.5, 0.5, 1.0],
    }
    out = wt.simulate(jobs, "1x1", "srtf", restore_time=1.0, slowdown="share=0.5")
    assert column(out, "num_preemptions") == [1, 1, 0]
    # a: 6 + 1 + 7 / 0.5 = 21; b: 19 - 7 = 12 s left then: 33.
    assert column(out, "end_time") == pytest.approx([21.0, 33.0, 6.0])
    assert column(out, "slowdown_time") == pytest.approx([1 + 7, 1 + 7, 0])


def test_the_shortest_remaining_work_goes_first_not_the_nearest_end() -> None:
    # At 2 a and b have 4 s of work left each, and would end at 10; c, of 5 s, does not go before.
    jobs = {"submit_time": [0.0, 0.0, 2.0], "duration": [5.0, 5.0, 5.0], "num_gpus": [0.5, 0.5, 1]}
    out = wt.simulate(jobs, "1x1", "srtf", slowdown="share=0.5")
    assert column(out, "end_time") == [10, 10, 15]
    assert column(out, "num_preemptions") == [0, 0, 0]


def test_a_horizon_books_what_was_lost_until_then() -> None:
    jobs = {"submit_time": [0.0, 0.0], "duration": [10.0, 10.0], "num_gpus": [0.5, 0.5]}
    out = wt.simulate(jobs, "1x1", slowdown="share=0.5", until=6.0)
    assert column(out, "status") == ["running", "running"]
    assert column(out, "slowdown_time") == [3, 3]
    assert out.metrics()["avg_rate"] == 0.5


def test_policies_see_work_and_estimates_stay_as_given() -> None:
    seen = []

    def decide(now: float, queue: Any, cluster: Any) -> Any:
        seen.append([(now, job.row, job.remaining, job.run_time) for job in cluster.running])
        return [wt.Start(job) for job in queue]

    jobs = {"submit_time": [0.0, 2.0, 6.0], "duration": [10.0, 9.0, 1.0],
            "num_gpus": [0.3] * 3}  # fmt: skip
    wt.simulate(jobs, "1x1", decide, slowdown="share=0.5")
    assert seen[2] == [(6.0, 0, 6.0, 6.0), (6.0, 1, 7.0, 4.0)]
    # EASY: the head needs the whole GPU; by its estimate a ends at 4, so c (2 s) does not delay it.
    jobs = {"submit_time": [0.0, 1.0, 1.0], "duration": [4.0, 5.0, 2.0], "estimate": [4.0, 5, 2],
            "num_gpus": [0.5, 1.0, 0.5]}  # fmt: skip
    out = wt.simulate(jobs, "1x1", "easy", slowdown="share=0.5")
    assert column(out, "start_time") == [0, pytest.approx(6.0), 1]


def test_what_the_run_cannot_tell_is_refused() -> None:
    jobs = {"submit_time": [0.0], "duration": [1.0], "num_gpus": [1.0], "num_cpus": [1.0]}

    def refused(cluster: str, **options: Any) -> str:
        with pytest.raises(wt.SpecError) as error:
            wt.simulate(jobs, cluster, **options)
        return str(error.value)

    assert refused("pool:4", slowdown="share=0.5").startswith("slowdown: on a pool")
    assert refused("2x4", slowdown="rack=0.5").startswith("slowdown.rack: the cluster states no")
    assert refused("2x4", slowdown="cpu").startswith("slowdown.cpu: the cluster states no cores")
    pooled = refused("2x4", slowdown="share=0.5", sharing="pooled")
    assert pooled.startswith("slowdown.share: pooled nodes")


def test_settings_say_the_model_and_give_it_again() -> None:
    jobs = {"submit_time": [0.0, 0.0], "duration": [1.0, 2.0], "num_gpus": [0.5, 0.5],
            "workload": ["a", "b"]}  # fmt: skip
    out = wt.simulate(jobs, "1x1", slowdown=PAIR)
    again = wt.simulate(jobs, "1x1", slowdown=out.settings["slowdown"])
    assert wt.Slowdown.from_mapping(out.settings["slowdown"]) == PAIR
    assert column(again, "end_time") == column(out, "end_time")
    plain = wt.simulate(jobs, "1x1")
    assert plain.settings["slowdown"] is None
    assert "slowdown_time" not in plain.table.column_names
    assert (plain.metrics()["avg_rate"], plain.metrics()["lost_to_slowdown"]) == (None, None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("spraed=0.4", "slowdown: unknown name 'spraed'. Did you mean 'spread'?"),
        ("rack", "slowdown: rack=: expected a number"),
        ("cpu=x", "slowdown: cpu=x: expected a number"),
        ("cpu=1", "slowdown.cpu: found 1.0; expected at least 0, below 1"),
        ("cpu=nan", "slowdown.cpu: found nan"),
        ("share=1.5", "slowdown.share: found 1.5; expected a factor from 0.001 to 1"),
        ("spread=0", "slowdown.spread: found 0.0; expected a factor from 0.001 to 100"),
        ("spread=nan", "slowdown.spread: found nan"),
        ("cpu=0.1,cpu=0.2", "slowdown: found cpu twice"),
        ("none.toml", "none.toml: cannot be read as TOML"),
    ],
)
def test_words_that_are_no_model(text: str, message: str) -> None:
    with pytest.raises(wt.SpecError) as error:
        wt.Slowdown.parse(text)
    assert str(error.value).startswith(message)


def test_published_words() -> None:
    assert wt.Slowdown.parse("spread,cpu") == wt.Slowdown(spread=0.42, cpu=0.28)
    with pytest.raises(wt.SpecError, match="found 3; expected a Slowdown"):
        wt.simulate({"submit_time": [0], "duration": [1], "num_gpus": [1]}, "1x1", slowdown=3)  # type: ignore[arg-type]


def test_a_toml_file_with_tables_beside_it(tmp_path: Path) -> None:
    spread = (SpreadFactor("LM", 2.0, 0.5), SpreadFactor('odd "name", x', 4.0, 1.25))
    share = (ShareFactor("a", "b", 0.8, 0.7), ShareFactor("a", "a", 0.6, 0.6))
    write_factors(spread, tmp_path / "spread.csv")
    write_factors(share, tmp_path / "share.csv")
    assert read_spread(tmp_path / "spread.csv") == spread
    assert read_share(tmp_path / "share.csv") == share
    file = tmp_path / "model.toml"
    file.write_text('rack = 0.8\nspread_table = "spread.csv"\nshare_table = "share.csv"\n')
    model = wt.Slowdown.from_toml(file)
    assert model == wt.Slowdown(rack=0.8, spread_by=spread, share_by=share)
    assert wt.Slowdown.parse(str(file)) == model
    assert model.share_factors() == {("a", "b"): 0.8, ("b", "a"): 0.7, ("a", "a"): 0.6}
    file.write_text('spread = 0.4\n[[share_by]]\njob_type = "a"\nother = "b"\nfactor = 0.8\n')
    with pytest.raises(wt.SpecError, match="missing required field `other_factor`"):
        wt.Slowdown.from_toml(file)
    file.write_text("spred = 0.4\n")
    with pytest.raises(wt.SpecError, match="Did you mean 'spread'"):
        wt.Slowdown.from_toml(file)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected a header line: job_type,num_gpus,factor"),
        ("job_type,gpus,factor\n", "column 'num_gpus': expected a column 'num_gpus'"),
        ("workload,num_gpus,factor\nLM,2\n", "line 2: found 2; expected 3 cells"),
        ("job_type,num_gpus,factor\n\nLM,2,x\n", "line 3, column 'factor': found 'x'"),
        ("job_type,num_gpus,factor\nLM,inf,1\n", "line 2, column 'num_gpus': found 'inf'"),
        ('job_type,num_gpus,factor\n"LM,2,1\n', "expected a line of CSV"),
    ],
)
def test_tables_that_cannot_be_read(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "t.csv"
    file.write_text(text)
    with pytest.raises(wt.TraceError) as error:
        read_spread(file)
    assert message in str(error.value)
    with pytest.raises(wt.TraceError, match="a CSV file that can be read"):
        read_spread(tmp_path / "none.csv")


def test_rows_that_disagree() -> None:
    with pytest.raises(wt.SpecError, match="two rows for 'LM' with 2 GPUs"):
        wt.Slowdown(spread_by=(SpreadFactor("LM", 2.0, 0.5), SpreadFactor("LM", 2.0, 0.6)))
    with pytest.raises(wt.SpecError, match="'a' beside 'a' has two rates"):
        wt.Slowdown(share_by=(ShareFactor("a", "a", 0.5, 0.6),))
    with pytest.raises(wt.SpecError, match=r"share_by\[0\].other_factor: found 2"):
        wt.Slowdown(share_by=(ShareFactor("a", "b", 0.5, 2.0),))
