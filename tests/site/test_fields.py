"""Each option of a run is written once, and everything else is made from it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click
import pytest

import windtunnel as wt
from windtunnel.cli.compare import compare
from windtunnel.cli.options import FLIGHT, SectionOption
from windtunnel.cli.simulate import simulate
from windtunnel.site.conditions import FIELDS, HOMES, QUIET, Conditions
from windtunnel.site.fields import SECTIONS
from windtunnel.study.grid.spec import OPTIONS

ROOT = Path(__file__).resolve().parents[2]
JOBS = {"submit_time": [0, 0, 1], "duration": [30, 10, 25], "num_gpus": [1, 1, 1]}
JOBS |= {"estimate": JOBS["duration"]}


@pytest.mark.parametrize("command", [simulate, compare])
def test_commands_have_every_field_that_a_command_line_can_say(command: click.Command) -> None:
    options = {one.name: one for one in command.params if isinstance(one, SectionOption)}
    assert {name for name, field in FIELDS.items() if field.metavar} - {"policy"} <= set(options)
    for name in FLIGHT:
        assert FIELDS[name].help in (options[name].help or "")
        assert options[name].section in SECTIONS


def test_help_lists_options_in_sections() -> None:
    text = compare.get_help(click.Context(compare, info_name="compare"))
    places = [
        text.index(f"\n{name}:\n") for name in ("Trace", "Cluster", "Scheduler", "Conditions")
    ]
    assert places == sorted(places)
    assert text.index("\nOutput:\n") > places[-1]
    assert text.index("--slowdown") < text.index("--queueing") < text.index("--until")


@pytest.mark.parametrize("command", [simulate, compare])
def test_defaults_are_shown_with_their_unit(command: click.Command) -> None:
    text = " ".join(command.get_help(click.Context(command, info_name=command.name)).split())
    assert "1=7/2=30/9=60. [default: 0 s]" in text
    assert "[default: the trace's, else 260 s]" in text
    assert "0.0" not in text


def test_times_and_powers_have_units() -> None:
    units = {name: field.unit for name, field in FIELDS.items() if field.unit}
    times = {name for name, field in FIELDS.items() if field.kind in {"time", "cost"}}
    assert {name for name, unit in units.items() if unit == "s"} == times
    rest = {name: unit for name, unit in units.items() if name not in times}
    assert rest == {"power_cap": "W", "carbon": "gCO2eq/kWh", "tariff": "money/kWh"}


def test_the_page_of_options_is_up_to_date(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    monkeypatch.delitem(sys.modules, "options_page", raising=False)
    import options_page  # type: ignore[import-not-found] # found on the path above

    assert options_page.PAGE.read_text(encoding="utf-8") == options_page.page()


def test_a_study_knows_the_same_options() -> None:
    assert set(OPTIONS) < set(FIELDS)


def test_a_site_and_a_scheduler_are_the_same_as_their_fields() -> None:
    site = wt.Site(cluster="2x2", slowdown="spread=0.5")
    scheduler = wt.Scheduler("srtf", queueing="easy", save_time=2.0)
    whole = wt.simulate(JOBS, site, scheduler, seed=3, until="1m")
    flat = wt.simulate(
        JOBS, "2x2", "srtf", slowdown="spread=0.5", queueing="easy", save_time=2.0, seed=3, until=60
    )
    wt.testing.assert_outcomes_equal(whole, flat)
    assert whole.settings == flat.settings
    mixed = wt.simulate(JOBS, site, policy="srtf", queueing="easy", save_time=2.0, seed=3, until=60)
    wt.testing.assert_outcomes_equal(whole, mixed)


def test_several_schedulers_are_compared() -> None:
    easy = wt.Scheduler("easy", decide_every="5s")
    runs = wt.compare(JOBS, wt.Site(cluster="pool:1"), ["fifo", easy])
    assert list(runs.outcomes) == ["fifo", "easy"]
    assert [one.settings["decide_every"] for one in runs.outcomes.values()] == [None, 5.0]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"queuing": "skip"}, "queuing: unknown name 'queuing'. Did you mean 'queueing'"),
        ({"queueing": "skipp"}, "queueing: unknown name 'skipp'. Did you mean 'skip'"),
        ({"queueing": 3}, "queueing: unknown name '3'. Known: conservative"),
        ({"slurm_conf": 3}, "slurm_conf: found 3; expected text"),
        ({"sharing": "device"}, "sharing: unknown name 'device'. Did you mean 'devices'"),
        ({"until": "soon"}, "until: found 'soon'; expected seconds"),
        ({"seed": -1}, "seed: found -1; expected a whole number >= 0"),
        ({"seed": 1.5}, "seed: found 1.5; expected a whole number >= 0"),
        ({"bind_types": 3}, "bind_types: found 3; expected names"),
        ({"engine": "fast"}, "engine: unknown name 'fast'"),
        ({"cluster": 12}, "cluster: found 12; expected"),
    ],
)
def test_wrong_values_are_named(fields: dict[str, object], message: str) -> None:
    site = None if "cluster" in fields else "pool:1"
    with pytest.raises(wt.SpecError, match=message):
        wt.simulate(JOBS, site, **fields)  # type: ignore[arg-type] # that is the point


@pytest.mark.parametrize(
    ("kind", "fields", "message"),
    [
        (wt.Scheduler, {"queuing": "skip"}, r"queuing: unknown name 'queuing'.* 'queueing'\?"),
        (wt.Scheduler, {"queueing": "skp"}, r"queueing: unknown name 'skp'.* 'skip'\?"),
        (wt.Site, {"clustr": "pool:1"}, r"clustr: unknown name 'clustr'.* 'cluster'\?"),
        (Conditions, {"sed": 3}, r"sed: unknown name 'sed'.* 'seed'\?"),
        (Conditions, {"site": "pool:1"}, r"site: found 'pool:1'; expected a Site"),
        (Conditions, {"scheduler": "fifo"}, r"scheduler: found 'fifo'; expected a Scheduler"),
    ],
)
def test_slips_in_the_structs_themselves(kind: Any, fields: Any, message: str) -> None:
    with pytest.raises(wt.SpecError, match=message):
        kind(**fields)


def test_no_cluster_and_two_policies_are_refused() -> None:
    with pytest.raises(wt.SpecError, match="cluster: found none; expected"):
        wt.simulate(JOBS)
    with pytest.raises(wt.SpecError, match="policy: is given twice"):
        wt.simulate(JOBS, "pool:1", "fifo", policy="srtf")


def test_a_field_has_one_home_and_says_nothing_by_default() -> None:
    plain = Conditions()
    for name, home in HOMES.items():
        assert name in home.__struct_fields__
        assert plain.value(name) == QUIET[name]
    assert plain.having(bind_types="V100,T4").scheduler.bind_types == ("V100", "T4")
    assert plain.having(bind_types="none").scheduler.bind_types == ()
    assert plain.having(bind_types="all").scheduler.bind_types is None


@pytest.mark.parametrize("values", [("64x8",), ("64x8", "all")])
def test_a_value_without_a_name_is_refused_saying_how_to_write_it(values: tuple[str, ...]) -> None:
    make: Any = wt.Site
    with pytest.raises(wt.SpecError, match=r"write each with its name: Site\(cluster='64x8'\)"):
        make(*values)
    assert wt.Scheduler("fifo").policy == "fifo"
