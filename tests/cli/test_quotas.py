"""``--quotas`` on simulate and compare, and the parameters of quotas in what is printed."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

JOBS = """\
job_id,submit_time,duration,num_gpus,vc
a1,0,100,4,a
a2,1,100,4,a
b1,10,10,4,b
"""
QUOTAS = """\
[[queues]]
vc = "a"
nominal_quota = 4
cohort = "c"

[[queues]]
vc = "b"
nominal_quota = 4
cohort = "c"
reclaim_within_cohort = "Any"
"""


@pytest.fixture
def jobs(tmp_path: Path) -> Path:
    path = tmp_path / "jobs.csv"
    path.write_text(JOBS, encoding="utf-8")
    return path


@pytest.fixture
def quotas(tmp_path: Path) -> Path:
    path = tmp_path / "quotas.toml"
    path.write_text(QUOTAS, encoding="utf-8")
    return path


def test_simulate(run: Callable[..., Any], jobs: Path, quotas: Path) -> None:
    words = ["simulate", jobs, "--cluster", "pool:8", "--policy", "quota"]
    data = run(*words, "--quotas", quotas, "--json").json
    assert data["num_preemptions"] == 1
    assert data["settings"]["parameters"]["quotas"][1]["reclaim_within_cohort"] == "Any"
    again = run(*shlex.split(data["command"])[1:], "--json").json
    assert again == data
    behind = run(*words[:-1], f"quota:file={quotas}", "--json").json
    assert behind["num_preemptions"] == 1


def test_what_is_printed(run: Callable[..., Any], jobs: Path, quotas: Path) -> None:
    words = ["simulate", jobs, "--cluster", "pool:8", "--policy", "quota:gang_timeout=60"]
    printed = " ".join(run(*words, "--quotas", quotas).out.split())
    assert "gang_timeout 60.0" in printed
    assert "quotas 2 given" in printed
    assert "No quotas were given" in " ".join(run(*words).out.split())


def test_compare(run: Callable[..., Any], jobs: Path, quotas: Path) -> None:
    words = ["compare", jobs, "--cluster", "pool:8", "--policies", "fifo,quota"]
    data = run(*words, "--quotas", quotas, "--json").json
    assert [r["num_preemptions"] for r in data["runs"]] == [0, 1]
    assert data["runs"][1]["policy"] == "quota"


def test_quotas_limit_every_policy(run: Callable[..., Any], jobs: Path, quotas: Path) -> None:
    quotas.write_text(QUOTAS.replace('cohort = "c"\n', ""), encoding="utf-8")  # nobody lends
    words = ["simulate", jobs, "--cluster", "pool:8", "--policy", "fifo", "--json"]
    waits = [
        run(*words, *more).json["avg_wait"]
        for more in ([], ["--quotas", quotas], ["--quotas", quotas, "--blocking-limits"])
    ]
    assert waits == [pytest.approx(wait / 3) for wait in (90, 99, 189)]
    data = run(*words, "--quotas", quotas, "--blocking-limits").json
    assert data["settings"]["blocking_limits"]
    assert run(*shlex.split(data["command"])[1:], "--json").json == data


@pytest.mark.parametrize(
    "command",
    [
        ["simulate", "--cluster", "pool:8", "--policy", "quota"],
        ["whatif", "--cluster", "pool:8", "--anyway"],
        ["report", "queue", "--cluster", "pool:8"],
    ],
)
def test_a_queue_of_nobody_is_noted(
    run: Callable[..., Any], tmp_path: Path, quotas: Path, command: list[str]
) -> None:
    first, *rows = JOBS.splitlines()
    lines = [f"{first},start_time,end_time", *(f"{row},20,30" for row in rows)]
    jobs = tmp_path / "jobs.csv"
    jobs.write_text("\n".join(lines), encoding="utf-8")
    words = [*command, jobs, "--quotas", quotas, "--json"]
    sentence = "The quotas name vc 'vX'; the trace has 'a', 'b'."
    assert sentence not in run(*words).json["notes"]
    more = QUOTAS + QUOTAS.partition("\n\n")[0].replace('"a"', '"vX"')
    quotas.write_text(more, encoding="utf-8")
    assert sentence in run(*words).json["notes"]


@pytest.mark.parametrize(
    ("policy", "file", "message"),
    [
        ("quota", "nowhere.toml", "nowhere.toml: cannot be read as TOML"),
    ],
)
def test_refusals(
    refused: Callable[..., str], jobs: Path, quotas: Path, policy: str, file: str, message: str
) -> None:
    words = ["simulate", jobs, "--cluster", "pool:8", "--policy", policy]
    assert message in refused(*words, "--quotas", file.format(quotas))


def test_a_broken_file_names_the_key(refused: Callable[..., str], jobs: Path, quotas: Path) -> None:
    quotas.write_text(QUOTAS.replace("nominal_quota", "nominal_quta"), encoding="utf-8")
    words = ["simulate", jobs, "--cluster", "pool:8", "--policy", "quota"]
    message = refused(*words, "--quotas", quotas)
    assert "$.queues[0].nominal_quta: unknown name" in message
    assert "Did you mean 'nominal_quota'?" in message
