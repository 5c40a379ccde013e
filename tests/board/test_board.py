"""The board: frozen, reproduced, and each policy in the class that it belongs to."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import windtunnel as wt
from windtunnel.board.bench import bench, holdout_seeds
from windtunnel.board.flights import drawn_as, flights
from windtunnel.board.foreknowledge import foreseen
from windtunnel.board.record import board_names, digests_and_bounds, entry, record
from windtunnel.board.scenarios import BY_NAME, SCENARIOS, SEEDS
from windtunnel.board.workloads import ChangedScenarioError, draw
from windtunnel.cli.root import windtunnel
from windtunnel.errors import SpecError
from windtunnel.report.board_result import markdown

#: How policies begin whose entry takes over 10 s: of these, two of the six seeds are flown.
LONG = ("equal-share", "gavel:", "morphling", "pollux:")
#: Policies whose entry takes under 5 s.
QUICK = ("fifo", "sjf", "easy", "las", "srtf", "tiresias", "conservative")


def test_every_scenario_is_what_was_frozen() -> None:
    for scenario in SCENARIOS:
        drawn_as(scenario, SEEDS[0], record()["digests"])


def test_a_changed_scenario_is_refused() -> None:
    with pytest.raises(ChangedScenarioError, match="'kalos', seed 1: its jobs or its site"):
        drawn_as(BY_NAME["kalos"], 1, {"kalos/1": "0" * 64})


@pytest.mark.parametrize("name", QUICK)
def test_one_scenario_of_the_board_is_reproduced(name: str) -> None:
    flown = flights(BY_NAME["kalos"], SEEDS, name, record()["digests"])
    assert list(flown.values) == record()["policies"][name]["values"]["kalos"]


@pytest.mark.slow
@pytest.mark.parametrize("name", board_names())
def test_the_whole_board_is_reproduced(name: str) -> None:
    seeds = SEEDS[:2] if name.startswith(LONG) else SEEDS
    kept = record()["policies"][name]
    values = {scenario: of_seed[: len(seeds)] for scenario, of_seed in kept["values"].items()}
    made = entry(name, record()["digests"], seeds)
    assert json.dumps(made, sort_keys=True) == json.dumps(kept | {"values": values}, sort_keys=True)


@pytest.mark.slow
def test_every_seed_is_what_was_frozen() -> None:
    made = digests_and_bounds()
    assert made == {name: record()[name] for name in made}


@pytest.mark.parametrize(
    "name", ["sjf", "srtf", "srsf", pytest.param("qssf", marks=pytest.mark.slow)]
)
def test_who_reads_true_durations_is_clairvoyant(name: str) -> None:
    assert foreseen(draw(BY_NAME["philly"], 1), name)
    assert record()["policies"][name]["class"] == "clairvoyant"


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", ["fifo", "easy", "las", "sjf-estimate", "conservative", "slurm"])
def test_who_goes_by_what_has_happened_is_online(name: str) -> None:
    assert foreseen(draw(BY_NAME["philly"], 1), name) == ""
    assert foreseen(draw(BY_NAME["failures"], 1), name) == ""
    assert record()["policies"][name]["class"] == "online"


@pytest.mark.slow
def test_the_page_has_the_boards_table() -> None:
    page = (Path(__file__).parents[2] / "docs" / "bench.md").read_text(encoding="utf-8")
    assert markdown(bench()) in page


def test_a_card_compares_with_the_board() -> None:
    found = bench(["sjf-estimate"], scenarios=["kalos", "deadlines"])
    (card,) = found.cards
    assert [row.scenario for row in card.rows] == ["kalos", "deadlines"]
    for row in card.rows:
        change = row.changes["fifo"]
        assert change.low is not None
        assert change.high is not None
        assert change.low <= change.estimate <= change.high
        assert row.best is not None
        assert row.bound <= row.best <= row.value
    assert found.ranked[0].kind == "online"


def test_a_policy_that_is_the_baseline_changes_nothing() -> None:
    (card,) = bench(["easy"], scenarios=["helios"]).cards
    change = card.overall["easy"]
    assert (change.estimate, change.low, change.high) == (1.0, 1.0, 1.0)


def test_holdout_seeds_are_new_and_come_again() -> None:
    assert not set(holdout_seeds(7)) & set(SEEDS)
    first = bench(["fifo"], scenarios=["kalos"], holdout=7)
    assert first.cards == bench(["fifo"], scenarios=["kalos"], holdout="7").cards
    assert (
        first.cards[0].rows[0].value != bench(["fifo"], scenarios=["kalos"]).cards[0].rows[0].value
    )


def test_the_cluster_holds_every_job_of_any_seed() -> None:
    sharing = BY_NAME["sharing"]  # twins of these seeds have jobs of more memory than any node
    for seed in (1112368172, 702840644, 685107602):
        drawn = draw(sharing, seed)
        outcome = wt.simulate(
            drawn.jobs, drawn.cluster, policy="fifo", **drawn.fields(elastic=False)
        )
        assert outcome.metrics()["num_finished"] == sharing.num_jobs


def test_no_scenario_is_a_usage_error() -> None:
    result = CliRunner().invoke(windtunnel, ["bench", "--scenarios", ","])
    assert (result.exit_code, "--scenarios: expected" in result.stderr) == (2, True)


@pytest.mark.parametrize(("given", "expected"), [("x", "expected new"), (-1, "expected new")])
def test_an_odd_holdout_is_refused(given: object, expected: str) -> None:
    with pytest.raises(SpecError, match=expected):
        bench(scenarios=["kalos"], holdout=given)  # type: ignore[arg-type] # that is the point


def test_the_command_shows_the_board() -> None:
    result = CliRunner().invoke(windtunnel, ["bench", "--json"])
    data = json.loads(result.stdout)
    assert result.exit_code == 0
    assert data["version"] == "bench-1"
    assert data["score"] is None
    assert {one["policy"] for one in data["board"]} == set(board_names())
    assert all(one["score"] >= 1 for one in data["board"])


def test_the_command_refuses_an_unknown_scenario() -> None:
    result = CliRunner().invoke(windtunnel, ["bench", "--scenarios", "kallos"])
    assert result.exit_code == 2
    assert "Did you mean 'kalos'" in result.output
