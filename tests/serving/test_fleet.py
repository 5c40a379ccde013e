"""Fleets: language models and groups of other models share one cluster."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING

import numpy as np
import pytest
from click.testing import CliRunner

from windtunnel import serving
from windtunnel.cli.root import windtunnel
from windtunnel.errors import InfeasibleError, SpecError
from windtunnel.serving.llm_costs import RooflineCost

if TYPE_CHECKING:
    from pathlib import Path

MODELS = ["small", "medium", "large"]


def llm(name: str, rate: float, seed: int, degrees: tuple[int, ...] = ()) -> serving.LlmService:
    rng = np.random.default_rng(seed)
    requests = serving.RequestTrace(
        arrival=np.cumsum(rng.exponential(1 / rate, 150)),
        prompt_tokens=rng.integers(50, 2000, 150),
        output_tokens=rng.integers(1, 300, 150),
    )
    cost = RooflineCost(
        parameters=8e9, layers=32, hidden=4096, weight_bytes=16e9, kv_bytes_per_token=131072,
        flops=3e14, flops_efficiency=0.5, bandwidth=2e12, bandwidth_efficiency=0.7,
        link_bandwidth=2e11, link_latency_s=4e-6, overhead_s=0.001,
    )  # fmt: skip
    model = serving.LlmModel(cost=cost, engine=serving.Engine(num_blocks=1500, max_num_seqs=32))
    return serving.LlmService(name, requests, model, degrees, ttft=0.5, tpot=0.03)


@pytest.fixture(scope="module")
def profile() -> serving.Profile:
    return serving.synthetic_profile()


@pytest.fixture(scope="module")
def workload(profile: serving.Profile) -> serving.Workload:
    slo = serving.slos(MODELS, profile, 5)
    return serving.generate(MODELS, duration=60, rate=20, cv=3, slo=slo)


def test_shares_are_the_best_of_all(profile: serving.Profile, workload: serving.Workload) -> None:
    services = [llm("chat", 12, 1, (1, 2)), llm("code", 4, 2)]
    gpus = 6
    found = serving.search_fleet(gpus, services, workload, profile, "sr-greedy")
    counts = [sum(len(one.requests) for one in services), len(workload)]

    def in_time(service: serving.LlmService, share: int) -> float:
        best = 0.0
        for model in service.models():
            for replicas in range(1, share // (model.gpus or 1) + 1):
                run = serving.simulate_llm(service.requests, model, replicas)
                best = max(best, run.attained(service.ttft, service.tpot).sum())
        return best

    def placed(share: int) -> float:
        if not share:
            return 0.0
        try:
            one = serving.search(workload, profile, share, "sr-greedy")
        except InfeasibleError:
            return 0.0
        return one.attainment * len(workload)

    tables = [[in_time(one, share) for share in range(gpus + 1)] for one in services]
    tables.append([max(placed(less) for less in range(share + 1)) for share in range(gpus + 1)])
    best = max(
        sum(table[share] for table, share in zip(tables, shares, strict=True))
        for shares in itertools.product(range(gpus + 1), repeat=3)
        if sum(shares) <= gpus
    )
    # Latency breaks ties alone: less than a request's worth in all.
    assert best - 1 <= found.attainment * sum(counts) <= best + 1e-9
    assert sum(one.gpus for one in found.llms) + found.placed_gpus <= gpus
    for one in found.llms:
        if one.outcome is not None:
            again = serving.simulate_llm(one.service.requests, one.model, one.replicas)
            assert (again.finish == one.outcome.finish).all()


def test_groups_alone_are_alpaserves(profile: serving.Profile, workload: serving.Workload) -> None:
    alone = serving.search(workload, profile, 2, "mp-search")
    found = serving.search_fleet(2, [], workload, profile)
    assert found.placed is not None
    assert found.placed.placement == alone.placement
    assert found.attainment == pytest.approx(alone.attainment)


def test_what_is_wrong_is_refused(workload: serving.Workload) -> None:
    with pytest.raises(SpecError, match="profile: is missing"):
        serving.search_fleet(2, [], workload)
    with pytest.raises(SpecError, match="expected each name once"):
        serving.search_fleet(2, [llm("a", 1, 0), llm("a", 1, 1)])
    with pytest.raises(SpecError, match="no requests"):
        serving.search_fleet(2, [])
    with pytest.raises(SpecError, match="gpus"):
        serving.search_fleet(0, [llm("a", 1, 0)])
    with pytest.raises(InfeasibleError, match="1 GPUs"):
        serving.search_fleet(1, [llm("a", 1, 0, (2,))])


def test_command_line(tmp_path: Path) -> None:
    rows = "".join(f"{i / 4},{100 + i},{1 + i % 40}\n" for i in range(60))
    (tmp_path / "r.csv").write_text("arrival,prompt_tokens,output_tokens\n" + rows)
    costs = "iteration_s=0.01\nprefill_token_s=1e-4\ndecode_seq_s=0\nkv_token_s=0\n"
    (tmp_path / "m.toml").write_text(costs + "[engine]\nnum_blocks=200\n")
    (tmp_path / "w.toml").write_text('models=["small"]\nslo_scale=5\nrate=5\nduration=20\n')
    file = tmp_path / "f.toml"
    service = '[chat]\nmodel="m.toml"\nrequests="r.csv"\nttft=0.5\n'
    file.write_text('workload="w.toml"\n' + service)
    ran = CliRunner().invoke(windtunnel, ["serving", "fleet", str(file), "--gpus", "3", "--json"])
    data = json.loads(ran.output)
    assert data["llms"][0]["replicas"] >= 1
    assert data["llms"][0]["metrics"]["slo_attainment"] == data["llms"][0]["slo_attainment"]
    assert data["groups"]["gpus"] + data["llms"][0]["gpus"] <= 3
    page = tmp_path / "fleet.html"
    words = ["serving", "fleet", str(file), "--gpus", "3", "--out", str(page)]
    shown = CliRunner().invoke(windtunnel, words)
    assert all(text in page.read_text() for text in ("chat", "other models", "P99 TTFT, s"))
    assert "chat" in shown.output
    assert "other models" in shown.output


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a=1", "a: found 1; expected a table"),
        ("", "expected a table of a language model"),
        ("workload=1", "workload: found 1; expected a file's name"),
        ("[a]\nmodle='m'", "a.modle: unknown"),
        ("[a]\nmodel='m'", "a.requests: is missing"),
        ("[a]\nmodel='m'\nrequests='r'\ntp=2", "a.tp: found 2; expected a list"),
        ("[a]\nmodel='m'\nrequests='r'\ntp=[0]", "a.tp: found 0; expected a whole number"),
        ("[a]\nmodel='m'\nrequests='r'\nttft=0", "a.ttft: found 0; expected a finite number"),
    ],
)
def test_wrong_files(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "f.toml"
    file.write_text(text)
    with pytest.raises(SpecError) as error:
        serving.read_fleet(file)
    assert words in str(error.value)
    assert str(file) in str(error.value)
