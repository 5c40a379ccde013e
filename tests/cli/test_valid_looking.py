"""Values that look right and are not, closed streams, long names: one sentence, never a fault."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

import windtunnel as wt
from windtunnel.errors import SpecError, TraceError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

JOBS = {"submit_time": [0, 0, 1], "duration": [30, 10, 25], "num_gpus": [1, 1, 1]}
POWER = {"gpus": {"default": {"idle_w": 50, "active_w": 250}}}
SERIES = "time,value\n0,100\n3600,200\n7200,100\n"


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    """Files that options name: key -> path."""
    power, series, large = (tmp_path / name for name in ("power.toml", "ci.csv", "large.csv"))
    power.write_text("[gpus.default]\nidle_w = 50\nactive_w = 250\n")
    series.write_text(SERIES)
    large.write_text("time,value\n0," + "1" * 140_000 + "\n")
    return {"POWER": str(power), "SERIES": str(series), "LARGE": str(large)}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--cluster 2x2 --power POWER --power-cap 1e300", "power_cap.watts: expected W above 0"),
        ("--cluster 2x2 --power POWER --power-cap 1e13", "at most 1e+12"),
        ("--cluster 2x2 --shift series=SERIES,max_delay=1e300", "expected at most 3650d"),
        ("--cluster pool:99999999999999999999", "found 1e+20; expected at most 2,147,483,647"),
        ("--cluster v100:1" + "0" * 30 + ",k80:24 --policy gavel:max_min_fairness", "1e+30"),
        (
            "--cluster pool:2 --policy os:system",
            "the function that the policy names raised TypeError",
        ),
        ("--cluster pool:2 --power POWER --carbon LARGE", "line 2: expected a line of CSV"),
    ],
)
def test_a_value_that_looks_right_is_refused_in_one_sentence(
    refused: Callable[..., str], lecture: Path, files: dict[str, str], words: str, said: str
) -> None:
    for name, path in files.items():
        words = words.replace(name, path)
    assert said in refused("simulate", lecture, *words.split())


@pytest.mark.parametrize("option", ["--refresh-jobs", "--min-history", "--train-last"])
def test_counts_that_no_trace_has_are_refused(
    refused: Callable[..., str], lecture: Path, option: str
) -> None:
    said = refused("predict", "durations", lecture, option, 2**64 - 1)
    assert "found 18446744073709551615; expected a whole number of at most 2,147,483,647" in said


def test_more_requests_than_a_machine_holds_are_refused(refused: Callable[..., str]) -> None:
    said = refused("serving", "simulate", "--rate", "2e7")
    assert "expected at most 20,000,000 at once" in said


def test_the_largest_seed_is_one(run: Callable[..., Any], lecture: Path) -> None:
    words = ("--cluster", "2x2", "--seed", 2**64 - 1, "--placement", "random")
    assert run("simulate", lecture, *words, "--json").json["settings"]["seed"] == 2**64 - 1


def test_python_checks_what_the_command_checks(files: dict[str, str]) -> None:
    for cluster in ("pool:99999999999999999999", "3x2147483647"):
        with pytest.raises(SpecError, match=r"2,147,483,647"):
            wt.simulate(JOBS, cluster)
    with pytest.raises(SpecError, match="power_cap"):
        wt.simulate(JOBS, "2x2", power=POWER, power_cap=1e300)
    with pytest.raises(SpecError, match="3650d"):
        wt.simulate(JOBS, "2x2", shift=f"series={files['SERIES']},max_delay=1e300")
    with pytest.raises((SpecError, TraceError)):
        wt.simulate(JOBS, "2x2", shift=f"series={files['LARGE']},max_delay=1h")


def test_a_name_of_ten_thousand_letters_is_cut(refused: Callable[..., str], lecture: Path) -> None:
    for words in (
        ("x" * 10_000,),
        (lecture, "--policy", "y" * 10_000),
        (lecture, "--" + "z" * 9000),
    ):
        said = refused("simulate", *words, "--cluster", "pool:2")
        assert len(said) < 2000


@pytest.mark.parametrize(
    ("closed", "words", "code"),
    [
        (">&-", "--cluster pool:2", 0),
        (">&- 2>&- <&-", "--cluster pool:2 --json --out OUT", 0),
        ("2>&-", "--cluster pool:2 --policy nope", 2),
        ("> /dev/full", "--cluster pool:2", 2),
    ],
)
def test_closed_and_full_streams(
    lecture: Path, tmp_path: Path, closed: str, words: str, code: int
) -> None:
    out = tmp_path / "out.csv"
    command = f"simulate {lecture} {words.replace('OUT', str(out))}"
    ran = subprocess.run(  # noqa: S603 - our own command
        ["/bin/sh", "-c", f"{sys.executable} -m windtunnel {command} {closed}"],
        capture_output=True,
        check=False,
        text=True,
        timeout=200,
    )
    assert ran.returncode == code, ran.stderr
    assert "fault" not in ran.stderr
    assert "Traceback" not in ran.stderr
    if "full" in closed:
        assert ran.stderr == "Error: standard output: No space left on device.\n"
    if "OUT" in words:
        assert out.read_text().startswith('"job_id"')
        assert out.read_text().count("\n") == 5
