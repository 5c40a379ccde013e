"""Policies of strangers: honest ones fly as in this process, planted cheats are caught."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from windtunnel.board import confined
from windtunnel.board.bench import bench
from windtunnel.board.confined import Process
from windtunnel.board.flights import CheatError, fly, measure
from windtunnel.board.scenarios import BY_NAME
from windtunnel.board.workloads import draw
from windtunnel.errors import PolicyError
from windtunnel.policies import resolve_policy

if TYPE_CHECKING:
    from collections.abc import Iterable

    from windtunnel.board.workloads import Drawn

HERE = str(Path(__file__).parent)
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs fork and limits")


@pytest.fixture(autouse=True)
def _strangers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(HERE)


@pytest.fixture
def drawn() -> Drawn:
    return draw(BY_NAME["failures"], 1)


#: Each needs a process of its own: a few stand for all where time is short.
_QUICK = {
    "by_estimate",
    "LargestThatFits",
    "the_clock",
    "once_before",
    "true_duration",
    "a_swallowed_file",
    "every_object",
}


def _sample(names: Iterable[str]) -> list[Any]:
    slow = pytest.mark.slow
    return [name if name in _QUICK else pytest.param(name, marks=slow) for name in names]


HONEST = ("by_estimate", "ageing", "LeastService", "first_that_fit", "LargestThatFits")


UNWATCHED = """
import sys
from windtunnel.board.confined_process import _load

class Guard:
    def watch(self):
        print("windtunnel.policies.fair_share" in sys.modules)
        sys.exit()

_load(None, Guard(), "policies:by_estimate")
"""


def test_what_is_built_in_is_imported_before_the_watch_begins() -> None:
    found = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", UNWATCHED], capture_output=True, text=True, check=False
    )
    assert found.stdout == "True\n", found.stderr


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", _sample(HONEST))
def test_an_honest_policy_flies_as_in_this_process(name: str, drawn: Drawn) -> None:
    with Process(f"policies:{name}") as process:
        outcome = fly(drawn, process.policy())
        again = fly(drawn, process.policy())
    here = fly(drawn, resolve_policy(f"policies:{name}"))
    assert outcome.table.equals(here.table)
    assert again.segments.equals(here.segments)


#: Cheat -> the message about it.
CAUGHT = {
    "true_duration": "reads 'duration'",
    "by_another_name": "reads 'duration'",
    "swallowed": "reads 'duration'",
    "frames_of_the_caller": "reads 'duration'",
    "recorded_end": "reads 'end_time'",
    "remaining": "reads 'remaining'",
    "others_fates": "reads 'status'",
    "FasterThanLight": "a policy cannot make a job faster",
    "a_file": "(open|import|os)",
    "a_swallowed_file": "open",
    "notes_for_later": "open",
    "the_parents_memory": "open",
    "another_process": "subprocess.Popen",
    "the_network": "socket",
    "memory_by_hand": "ctypes.dlopen",
    "every_object": "gc.get_objects",
    "its_own_flight": "(import|open)",
    "the_scenario_itself": "(import|open)",
}


@pytest.mark.parametrize("name", _sample(CAUGHT))
def test_a_cheat_is_caught(name: str, drawn: Drawn) -> None:
    with (
        Process(f"cheats:{name}") as process,
        pytest.raises(CheatError, match=f"refused: .*{CAUGHT[name]}"),
    ):
        fly(drawn, process.policy())


#: Cheats that find nothing: what they look for is not in their process.
EMPTY = {
    "the_whole_table": "table",
    "inner_columns": "'duration'",
    "TheSimulator": "no 'deciding'",
    "a_thread": "thread",
    "NotYetArrived": "KeyError|has not arrived",
}


@pytest.mark.parametrize("name", _sample(EMPTY))
def test_a_cheat_finds_nothing(name: str, drawn: Drawn) -> None:
    with Process(f"cheats:{name}") as process, pytest.raises(PolicyError, match=EMPTY[name]):
        fly(drawn, process.policy())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ByRemaining", "PerfectEstimates", "ByOracle", "Fills"])
def test_what_would_let_the_simulator_cheat_is_refused(name: str) -> None:
    with pytest.raises(PolicyError, match="a confined policy leaves it as it is"):
        Process(f"cheats:{name}")


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", _sample(["the_clock", "chance", "numpys_chance", "the_order_of_a_set"])
)
def test_what_is_not_the_same_twice_is_refused(name: str) -> None:
    with pytest.raises(CheatError, match="flown twice, it did not do the same"):
        bench([f"cheats:{name}"], scenarios=["kalos"])


@pytest.mark.parametrize("name", _sample(["once_before", "jobs_to_come"]))
def test_no_run_remembers_another_nor_sees_what_comes(name: str, drawn: Drawn) -> None:
    fifo = measure(drawn, fly(drawn, "fifo"))
    with Process(f"cheats:{name}") as process:
        assert [measure(drawn, fly(drawn, process.policy())) for _ in range(3)] == [fifo] * 3


@pytest.mark.slow
def test_time_has_a_limit(monkeypatch: pytest.MonkeyPatch, drawn: Drawn) -> None:
    monkeypatch.setattr(confined, "CPU_SECONDS", 1)
    with (
        Process("cheats:for_ever") as process,
        pytest.raises(CheatError, match="more CPU time than it has"),
    ):
        fly(drawn, process.policy())


@pytest.mark.slow
def test_memory_has_a_limit(drawn: Drawn) -> None:
    with (
        Process("cheats:all_memory") as process,
        pytest.raises(CheatError, match="more memory than it has"),
    ):
        fly(drawn, process.policy())


@pytest.mark.slow
def test_true_durations_are_for_those_who_say_so(drawn: Drawn) -> None:
    with pytest.raises(CheatError, match="reads 'duration'"):
        bench(["policies:by_duration"], scenarios=["kalos"])
    (card,) = bench(["policies:by_duration"], scenarios=["kalos"], clairvoyant=True).cards
    sjf = bench(["sjf"], scenarios=["kalos"]).cards[0]
    assert card.kind == "clairvoyant"
    assert card.score == sjf.score


def test_a_policy_that_there_is_not_is_reported() -> None:
    with pytest.raises(PolicyError, match="cannot import 'nowhere:policy'"):
        Process("nowhere:policy")


@pytest.mark.slow
def test_a_process_says_nothing_to_the_terminal(
    capfd: pytest.CaptureFixture[str], drawn: Any
) -> None:
    with Process("policies:by_estimate") as process:
        fly(drawn, process.policy())
    assert capfd.readouterr() == ("", "")


def test_who_flies_nothing_has_no_score() -> None:
    with pytest.raises(
        PolicyError, match=r"flies none of the scenarios: SpecError: rank: returned"
    ):
        bench(["policies:nothing"], scenarios=["kalos"])
