"""The bench: what a setup flies, which cluster it is on, and what is kept of it."""

from __future__ import annotations

import tomllib
from dataclasses import replace

import numpy as np
import pytest

import windtunnel as wt
from windtunnel.lab import drawing, export
from windtunnel.lab.bench import KEPT, Bench, Source
from windtunnel.lab.setup import ANY, AUTO, Setup, fast_policies, placements, queueing_rules
from windtunnel.traces import Trace, TraceMetadata

JOBS = {
    "submit_time": [0.0, 0.0, 10.0, 20.0],
    "duration": [40.0, 10.0, 10.0, 5.0],
    "num_gpus": [8.0, 8.0, 4.0, 16.0],
    "gpu_type": [None, "A100", "A100|V100", None],
    "user": ["<script>alert(1)</script>", "b", "c", "d"],
}


def bench_of(cluster: wt.ClusterSpec | None = None, name: str = "small", **source: object) -> Bench:
    """Return a bench with a small trace."""
    jobs = wt.simulate(JOBS, "9x8:A100", bind_types=()).jobs
    trace = Trace(jobs, cluster=cluster, metadata=TraceMetadata(name, "made up"))
    return Bench(trace, Source("small.csv", dict(source)))


def test_equal_nodes_fly_as_simulate_does() -> None:
    bench = bench_of()
    setup = Setup(nodes=2, gpus_per_node=8, policies=("fifo", "srtf"))
    flown = bench.fly(setup)
    assert list(flown) == ["fifo", "srtf"]
    for policy, outcome in flown.items():
        same = wt.simulate(bench.trace.jobs, "2x8", policy, oversize="reject", incomplete="reject")
        assert outcome.table.equals(same.table)


def test_one_policy_against_itself_is_one_run() -> None:
    assert list(bench_of().fly(Setup(nodes=2, gpus_per_node=8, policies=("las", "las")))) == ["las"]


def test_jobs_that_do_not_fit_are_rejected_and_reported() -> None:
    flown = bench_of().fly(Setup(nodes=1, gpus_per_node=8))
    assert flown["fifo"].metrics()["num_rejected"] == 1


def test_the_first_setup_is_the_traces_own_cluster() -> None:
    cluster = wt.ClusterSpec((wt.NodeType(3, 4, "V100", cpus=8), wt.NodeType(2, 8, "A100")), "own")
    bench = bench_of(cluster)
    assert (bench.first.nodes, bench.first.gpus_per_node, bench.first.gpu_type) == (4, 8, ANY)
    assert bench.cluster(bench.first) == cluster
    other = replace(bench.first, nodes=5)
    assert not bench.is_own(other)
    assert bench.cluster(other) == wt.ClusterSpec.uniform(5, 8)
    assert bench.gpu_types() == (ANY, "V100", "A100")


def test_a_trace_without_a_cluster_gets_one_that_it_fills() -> None:
    # 320 + 80 + 40 + 80 GPU seconds in 20 s at 90 %: 28.9 GPUs.
    first = bench_of().first
    assert (first.nodes, first.gpus_per_node) == (4, 8)


def test_load_stretches_submissions_as_a_study_would() -> None:
    bench = bench_of()
    setup = Setup(nodes=2, gpus_per_node=8, load=2.0)
    assert bench.offered(replace(setup, load=1.0)) is None
    held = (JOBS["duration"] * np.array(JOBS["num_gpus"])).sum()
    assert bench.offered(setup) == pytest.approx(2 * held / (20 * 16))
    submit = bench.fly(setup)["fifo"].submit_time
    assert submit.tolist() == [0.0, 0.0, 5.0, 10.0]


def test_what_was_flown_last_is_kept() -> None:
    bench = bench_of()
    setup = Setup(nodes=2, gpus_per_node=8)
    first = bench.fly(setup)
    assert bench.fly(setup)["fifo"] is first["fifo"]
    for nodes in range(3, 3 + KEPT):
        bench.fly(replace(setup, nodes=nodes, policies=("fifo", "fifo")))
    assert bench.fly(setup)["fifo"] is not first["fifo"]


def test_every_choice_of_the_page_can_be_flown_or_says_why_not() -> None:
    bench = bench_of()
    base = Setup(nodes=4, gpus_per_node=8)
    setups = [replace(base, policies=(name, "fifo")) for name in fast_policies()]
    setups += [replace(base, queueing=name) for name in queueing_rules()]
    setups += [replace(base, placement=name) for name in placements()]
    setups += [replace(base, sharing=name) for name in ("devices", "pooled")]
    refused = {}
    for setup in setups:
        try:
            bench.fly(setup)
        except wt.WindtunnelError as error:
            refused[setup] = str(error)
    # Nothing can be planned with requested wall times or deadlines that nobody recorded.
    assert all("estimate" in text or "deadline" in text for text in refused.values())
    assert {setup.policies[0] for setup in refused if setup.queueing == AUTO} == {
        *("sjf-estimate", "easy", "easy-sjbf", "conservative", "edf"),
    }
    assert {"fifo", "sjf", "srtf", "las"} <= set(fast_policies())


def test_the_study_says_all_that_was_chosen() -> None:
    bench = bench_of(reader="ignored", zone="Asia/Shanghai")
    setup = Setup(
        nodes=3,
        gpus_per_node=4,
        gpu_type="A100",
        load=1.5,
        policies=("sjf", "fifo"),
        queueing="skip",
        placement="spread",
        sharing="devices",
    )
    data = tomllib.loads(export.study_toml(bench, setup))
    assert data == export.study(bench, setup)
    assert data == {
        "name": "lab",
        "policies": ["sjf", "fifo"],
        "clusters": ["3x4:A100"],
        "placements": ["spread"],
        "queueing": ["skip"],
        "loads": [bench.offered(setup)],
        "seeds": [0],
        "options": {"oversize": "reject", "incomplete": "reject", "sharing": "devices"},
        "traces": [{"trace": "small.csv", "zone": "Asia/Shanghai"}],
    }
    plain = export.study(bench, Setup(nodes=3, gpus_per_node=4))
    assert plain["loads"] == ["recorded"]
    assert "queueing" not in plain
    own = bench_of(wt.ClusterSpec.uniform(4, 8))
    assert export.study(own, own.first)["clusters"] == ["own"]


@pytest.mark.parametrize("name", ['a"b\\c', "tab\there", "\u202e\U0001f600", "\x7f\x01", "=1+1"])
def test_a_study_keeps_any_name(name: str) -> None:
    bench = bench_of()
    strange = Bench(bench.trace, Source(name, {}))
    text = export.study_toml(strange, Setup(nodes=2, gpus_per_node=8))
    assert tomllib.loads(text)["traces"] == [{"trace": name}]


@pytest.mark.slow
def test_the_page_is_that_of_a_comparison() -> None:
    bench = bench_of(name="<b>trace")
    text = export.page(bench, Setup(nodes=2, gpus_per_node=8))
    assert text.startswith("<!doctype html>")
    assert "<b>trace" not in text
    assert "<script" not in text


def test_names_in_what_is_shown_are_text() -> None:
    shown = drawing.flown(bench_of(), Setup(nodes=2, gpus_per_node=8))
    assert "lab-headline" in shown
    assert "<script" not in shown
    assert "<i>" not in drawing.failed("no <i>such</i> thing")
    heading = drawing.heading(bench_of(name="<script>x</script>").trace)
    assert "<script>" not in heading
    assert AUTO in queueing_rules()
