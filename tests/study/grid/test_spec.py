"""STUDY.toml: what it may say, and what is reported where it is wrong."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from studies import study_of, write_trace

from windtunnel.errors import SpecError
from windtunnel.study.grid import Study
from windtunnel.study.grid.plan import grid, plan
from windtunnel.study.grid.spec import to_toml
from windtunnel.traces.trace_name import MOVED

if TYPE_CHECKING:
    from pathlib import Path

GOOD: dict[str, Any] = {"traces": ["philly"], "policies": ["fifo", "sjf"]}


@pytest.mark.parametrize(
    ("given", "place", "message"),
    [
        ({"polices": ["fifo"]}, "$.polices", "'policies'"),
        ({"traces": [{"trace": "philly", "zon": 3}]}, "$.traces[0].zon", "'zone'"),
        (
            {"policies": [{"policy": "fifo", "queing": "skip"}]},
            "$.policies[0].queing",
            "'queueing'",
        ),
        ({"options": {"oversized": "reject"}}, "$.options.oversized", "'oversize'"),
        ({"energy": {"power": "p.toml", "carbn": 3}}, "$.energy.carbn", "'carbon'"),
        (
            {"search": {"objective": "avg_wait", "trails": 3}},
            "$.search.trails",
            "'trials'",
        ),
        (
            {"search": {"objective": "avg_wait", "space": {"aging": {"lo": 1, "high": 2}}}},
            "$.search.space.aging.lo",
            "'low'",
        ),
        ({"policies": []}, "$.policies", "at least one policy"),
        ({"traces": []}, "$.traces", "at least one value"),
        ({"traces": ["philly", "philly"]}, "$.traces", "'philly' twice"),
        ({"loads": [0.0]}, "$.loads", "numbers > 0"),
        ({"loads": ["recordd"]}, "$.loads", "numbers > 0"),
        ({"loads": [float("nan")]}, "$.loads", "numbers > 0"),
        ({"seeds": 0}, "$.seeds", "at least one value"),
        ({"seeds": [1, 1]}, "$.seeds", "1 twice"),
        ({"seeds": [-1]}, "$.seeds", ">= 0"),
        ({"policies": ["fifo", "sjf", "fifo"]}, "$.policies", "'fifo' twice"),
        ({"policies": [{"policy": "fifo"}, {"policy": "fifo"}]}, "$.policies", "twice"),
        ({"seeds": "many"}, "STUDY", "seeds"),
        ({"parameters": {"aging": []}}, "$.parameters.aging", "at least one value"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(
    given: dict[str, Any], place: str, message: str
) -> None:
    with pytest.raises(SpecError) as caught:
        Study.from_mapping({**GOOD, **given}, source="STUDY")
    assert str(caught.value).startswith("STUDY")
    assert place in str(caught.value)
    assert message in str(caught.value)
    assert str(caught.value).count("STUDY") == 1


@pytest.mark.parametrize(
    ("key", "value", "name"),
    [
        ("jobs", 200, "synthetic:kalos:jobs=2000"),
        ("load", 0.9, "synthetic:kalos:load=0.9"),
        ("cpu_jobs", True, "synthetic:kalos:cpu_jobs=yes"),
    ],
)
def test_a_key_of_earlier_versions_is_answered_with_where_it_stands_now(
    key: str, value: object, name: str
) -> None:
    traces = ["philly", {"trace": "synthetic:kalos", key: value}]
    with pytest.raises(SpecError) as caught:
        Study.from_mapping({**GOOD, "traces": traces}, source="STUDY")
    expected = f"STUDY: $.traces[1].{key}: stands in the trace's name now: {name}."
    assert str(caught.value) == expected


def test_a_key_that_is_there_again_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MOVED, "zone", "stands elsewhere now.")
    study = Study.from_mapping({**GOOD, "traces": [{"trace": "philly", "zone": "UTC"}]})
    assert study.trace_entries()[0].zone == "UTC"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"policies": ["fifi"]}, "Did you mean 'fifo'"),
        ({"placements": ["best_fti"]}, "Did you mean 'best_fit'"),
        ({"queueing": ["skp"]}, "Did you mean 'skip'"),
        ({"clusters": ["8y8"]}, "NODESxGPUS"),
        ({"policies": ["sjf:by=sjg:aging={ageing}"]}, "stands for no parameter"),
        ({"parameters": {"sav_time": [1]}}, "Did you mean 'save_time'"),
        ({"options": {"save_time": 1}, "parameters": {"save_time": [1]}}, "give it once"),
        ({"options": {"estimates": "perfct"}}, "Did you mean 'perfect'"),
        ({"options": {"oversize": "rejct"}}, "Did you mean 'reject'"),
        ({"options": {"until": float("nan")}}, "found nan; expected seconds"),
        ({"parameters": {"save_time": ["x"]}}, "found 'x'; expected seconds"),
        ({"parameters": {"engine": ["auto", "referenc"]}}, "Did you mean 'reference'"),
        (
            {"policies": [{"policy": "fifo"}, {"policy": "fifo", "queueing": "skip"}]},
            "both called 'fifo'",
        ),
        ({"seeds": 1_000_000_000}, "expected at most 1,000,000"),
    ],
)
def test_unknown_names_are_refused_before_any_run(given: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        grid(Study.from_mapping({**GOOD, **given}))


def test_the_grid_is_the_product_of_its_axes() -> None:
    study = Study.from_mapping(
        {
            "traces": ["philly", {"trace": "synthetic:kalos:jobs=10"}],
            "clusters": ["own", "4x8"],
            "policies": ["fifo", "sjf", "sjf:by=sjg:aging={aging}"],
            "placements": ["best_fit", "spread"],
            "queueing": ["strict", "skip"],
            "loads": [0.9, "recorded"],
            "seeds": [3, 5],
            "parameters": {"aging": [1, 2.5], "save_time": [0, 60]},
        }
    )
    runs = plan(study)
    # The aging reaches one policy of three.
    assert len(runs) == 2 * 2 * (2 + 2) * 2 * 2 * 2 * 2 * 2
    assert len({run.run_id for run in runs}) == len(runs)
    assert {run.flown for run in runs if run.policy.startswith("sjf:")} == {
        "sjf:by=sjg:aging=1",
        "sjf:by=sjg:aging=2.5",
    }
    assert {(run.trace, run.trace_seed) for run in runs} == {
        ("philly", None),
        ("synthetic:kalos:jobs=10", 3),
        ("synthetic:kalos:jobs=10", 5),
    }
    assert {tuple(run.parameters) for run in runs if run.policy == "fifo"} == {("save_time",)}
    assert {run.options["save_time"] for run in runs} == {0, 60}


def test_a_policy_with_its_own_rule_stands_beside_the_others_under_each() -> None:
    study = Study.from_mapping(
        {
            **GOOD,
            "queueing": ["strict", "skip"],
            "policies": ["fifo", {"policy": "fifo", "queueing": "easy", "name": "easy"}],
        }
    )
    cells = grid(study)
    assert [(c.queueing, c.run.policy, c.run.queueing) for c in cells] == [
        ("strict", "fifo", "strict"),
        ("strict", "easy", "easy"),
        ("skip", "fifo", "skip"),
        ("skip", "easy", "easy"),
    ]
    assert len(plan(study)) == 3


def test_ids_stay_when_the_study_grows() -> None:
    small = {run.run_id for run in plan(Study.from_mapping(GOOD))}
    grown = Study.from_mapping(
        {
            **GOOD,
            "policies": ["srtf", "sjf", "fifo"],
            "seeds": 3,
            "loads": ["recorded", 0.9],
            "clusters": ["own", "4x8"],
        }
    )
    assert small < {run.run_id for run in plan(grown)}


@given(
    st.fixed_dictionaries(
        {
            "traces": st.lists(
                st.sampled_from(["philly", "openb", "helios"]), min_size=1, unique=True
            ),
            "policies": st.lists(
                st.sampled_from(["fifo", "sjf", "srtf", "las"]), min_size=1, unique=True
            ),
        },
        optional={
            "seeds": st.integers(1, 4),
            "loads": st.lists(st.floats(0.1, 2), min_size=1, max_size=3, unique=True),
            "clusters": st.lists(
                st.sampled_from(["own", "2x8", "pool:4"]), min_size=1, unique=True
            ),
            "queueing": st.lists(st.sampled_from(["strict", "skip"]), min_size=1, unique=True),
        },
    )
)
def test_a_study_reads_back_from_what_it_writes(raw: dict[str, Any]) -> None:
    study = Study.from_mapping(raw)
    again = Study.from_mapping(msgspec.json.decode(msgspec.json.encode(study.to_mapping())))
    assert again == study
    runs = plan(study)
    assert [run.run_id for run in plan(again)] == [run.run_id for run in runs]
    sizes = [len(raw.get(name, [None])) for name in ("loads", "clusters", "queueing")]
    expected = len(raw["traces"]) * len(raw["policies"]) * raw.get("seeds", 1)
    assert len(runs) == expected * sizes[0] * sizes[1] * sizes[2]


def test_paths_are_relative_to_the_study_and_do_not_change_ids(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "inside"
    folder.mkdir()
    write_trace(folder / "jobs.csv")
    (folder / "c.toml").write_text("[[node_types]]\ncount = 2\ngpus = 8\n", encoding="utf-8")
    (folder / "slow.toml").write_text("spread = 0.5\n", encoding="utf-8")
    text = 'traces = ["jobs.csv"]\nclusters = ["c.toml"]\npolicies = ["fifo"]\n'
    text += '[options]\nslowdown = "slow.toml"\n'
    (folder / "STUDY.toml").write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    outside = Study.load("inside/STUDY.toml")
    assert outside.trace_entries()[0].trace == "inside/jobs.csv"
    assert outside.trace_entries()[0].label == "jobs.csv"
    assert outside.options == {"slowdown": {"spread": 0.5}}
    ids = [run.run_id for run in plan(outside)]
    monkeypatch.chdir(folder)
    assert [run.run_id for run in plan(Study.load("STUDY.toml"))] == ids


def test_a_file_that_is_no_study_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "STUDY.toml"
    with pytest.raises(SpecError, match="cannot be read as TOML"):
        Study.load(path)
    path.write_text("traces = [", encoding="utf-8")
    with pytest.raises(SpecError, match="cannot be read as TOML"):
        Study.load(path)
    path.write_text("policies = ['fifo']", encoding="utf-8")
    with pytest.raises(SpecError, match="traces"):
        Study.load(path)


def test_studies_differ_where_they_say_so(tmp_path: Path) -> None:
    one, other = study_of(tmp_path, seeds=2), study_of(tmp_path, seeds=[0, 1])
    assert [run.run_id for run in plan(one)] == [run.run_id for run in plan(other)]
    energetic = study_of(tmp_path, energy={"power": "p.toml"})
    assert not {r.run_id for r in plan(energetic)} & {r.run_id for r in plan(one)}


@given(
    name=st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    parameters=st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
        st.lists(
            st.one_of(
                st.integers(-(2**60), 2**60),
                st.floats(allow_nan=False),
                st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
            ),
            min_size=1,
            max_size=3,
            unique_by=str,
        ),
        max_size=3,
    ),
    seeds=st.one_of(st.integers(1, 9), st.lists(st.integers(0, 99), min_size=1, unique=True)),
    limit=st.floats(allow_nan=False),
)
def test_a_study_is_written_so_that_it_reads_back(
    name: str, parameters: dict[str, list[Any]], seeds: Any, limit: float
) -> None:
    study = Study.from_mapping(
        {
            **GOOD,
            "name": name,
            "traces": ["philly", {"trace": "jobs.csv", "name": name, "zone": "UTC"}],
            "seeds": seeds,
            "parameters": parameters,
            "options": {"slowdown": {"spread": 0.5}, "bind_types": ["A100"], "oversize": "reject"},
            "energy": {"power": "p.toml", "tariff": 0.25},
            "search": {
                "objective": "avg_wait",
                "space": {"aging": {"low": 1.0, "high": 9.0, "log": True}, "queueing": ["skip"]},
                "constraints": {"p99_wait": {"max": limit}},
            },
        }
        if name != "philly"
        else GOOD
    )
    assert Study.from_mapping(tomllib.loads(to_toml(study))) == study
