"""The operators' commands: tables, JSON and pages, on logs as they are and on hostile ones."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from windtunnel.schema import as_jobs
from windtunnel.traces.native import write_csv
from windtunnel.traces.sacct_writer import write_sacct

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

#: What an attacker calls users, jobs and virtual clusters.
EVIL = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "\x1b[31mred\x1b]0;title\x07",
    "=cmd|' /C calc'!A0",
    "x" * 10_000,
    "\u202egnp.exe",
    "../../etc/passwd",
    "{{ 7 * 7 }}",
    "[bold red]markup[/]",
    "two\nlines\ttab",
)
COMMANDS: tuple[tuple[str, ...], ...] = (
    ("report", "waste"),
    ("report", "queue", "--cluster", "2x8", "--job", "17"),
    ("report", "cost", "--price", "2.5"),
    ("predict", "wait", "--gpus", "2"),
    ("validate", "--policies", "fifo", "--cluster", "2x8"),
    ("whatif", "--nodes", "+1", "--cluster", "2x8", "--queueing", "skip", "--anyway"),
    ("whatif", "--to-policy", "quota", "--cluster", "2x8", "--queueing", "skip", "--anyway"),
    ("whatif", "--keep-p90-wait", "10m", "--cluster", "2x8", "--anyway"),
    ("whatif", "--surface", "nodes=1..3/1,policy=fifo,sjf", "--cluster", "2x8", "--anyway"),
)


def jobs(n: int = 300) -> dict[str, Any]:
    """Jobs of hostile users in hostile virtual clusters, over three weeks."""
    submit = [float(k * 6000) for k in range(n)]
    wait = [float(5 + (k * 37) % 900) for k in range(n)]
    run = [float(600 + (k * 977) % 9000) for k in range(n)]
    status = ("completed", "failed", "cancelled", "completed")
    return {
        "job_id": [str(k + 1) for k in range(n)],
        "submit_time": submit,
        "start_time": [s + w for s, w in zip(submit, wait, strict=True)],
        "end_time": [s + w + r for s, w, r in zip(submit, wait, run, strict=True)],
        "duration": run,
        "num_gpus": [float((1, 2, 4, 8)[k % 4]) for k in range(n)],
        "estimate": [14400.0] * n,
        "user": [EVIL[k % len(EVIL)] for k in range(n)],
        "vc": [EVIL[(k + 3) % len(EVIL)] for k in range(n)],
        "template": [EVIL[(k + 5) % len(EVIL)] for k in range(n)],
        "status": [status[k % 4] for k in range(n)],
    }


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("hostile") / "log.csv"
    write_csv(as_jobs(jobs()), path)
    return path


@pytest.mark.sample(2)
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_hostile_names_do_no_harm(
    run: Callable[..., Any], hostile: Path, tmp_path: Path, command: tuple[str, ...]
) -> None:
    out = tmp_path / "page.html"
    ran = run(*command, hostile, "--out", out)
    assert (ran.code, ran.err) == (0, "")
    assert all(char.isprintable() or char == "\n" for char in ran.out)
    assert "\u202e" not in ran.out
    page = out.read_text(encoding="utf-8")
    assert page.count("<script") == 2 * ("--surface" in command)  # its runs, and what picks them
    assert not re.search(r"<img|onerror=alert\(1\)>(?!&)", page)
    assert "x" * 2001 not in page
    assert "\u202e" not in page
    assert "\x1b" not in page
    assert not re.search(r"""(?:src|href)=["']?(?:https?:)?//""", page)
    again = tmp_path / "again.html"
    run(*command, hostile, "--out", again)
    assert again.read_text(encoding="utf-8").replace("again.html", "page.html") == page


@pytest.mark.sample(3)
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_json_is_one_value_in_ascii(
    run: Callable[..., Any], hostile: Path, command: tuple[str, ...]
) -> None:
    ran = run(*command, hostile, "--json")
    assert ran.code == 0
    assert ran.out.isascii()
    data = ran.json
    assert {"trace", "headline", "notes", "command", "page"} <= set(data)
    assert data["page"] is None
    assert data["command"].startswith(f"windtunnel {command[0]}")


def test_an_sacct_log_from_end_to_end(run: Callable[..., Any], tmp_path: Path) -> None:
    """Our own writer's log gives what the table itself gives."""
    names = {"user": ["u"] * 300, "vc": ["a"] * 300, "template": ["t"] * 300}
    table = as_jobs({**jobs(), **names})
    write_sacct(table, tmp_path / "log.sacct")
    write_csv(table, tmp_path / "log.csv")
    for command in COMMANDS[:4]:
        one, other = (
            run(*command, tmp_path / f"log.{ending}", "--json").json for ending in ("sacct", "csv")
        )
        for key in ("kinds", "by_user", "causes", "by_size", "total", "idle", "quantiles"):
            assert one.get(key) == other.get(key), (command, key)


def test_cost_adds_up_with_energy_beside_it(
    run: Callable[..., Any], hostile: Path, tmp_path: Path
) -> None:
    power = tmp_path / "power.toml"
    power.write_text("[gpus.default]\nidle_w = 50\nactive_w = 400\n", encoding="utf-8")
    more = ("--cluster", "2x8", "--power", power, "--carbon", "500")
    data = run("report", "cost", hostile, "--price", "3", *more, "--json").json
    for key in ("by_user", "by_vc", "by_gpu_type"):
        assert sum(row["cost"] for row in data[key]) + data["idle"] == pytest.approx(data["total"])
    held = sum(g * d for g, d in zip(jobs()["num_gpus"], jobs()["duration"], strict=True))
    assert data["allocated"] == pytest.approx(held / 3600 * 3)
    energy = data["energy"]
    assert energy["jobs_j"] == pytest.approx(held * 400)
    assert energy["carbon_kg"] == pytest.approx(energy["energy_j"] / 3.6e6 * 0.5)
    page = tmp_path / "p.html"
    assert run("report", "cost", hostile, "--price", "3", *more, "--out", page).code == 0
    assert "Energy and carbon" in page.read_text(encoding="utf-8")


@pytest.mark.slow
def test_telemetry_of_the_sample_log(run: Callable[..., Any], data_dir: Path) -> None:
    log, readings = data_dir / "formats" / "sacct_parsable2.txt", "dcgm_metrics.prom"
    more = ("--zone", "America/New_York", "--telemetry", data_dir / "formats" / readings, "--json")
    idle = run("report", "waste", log, *more).json
    # One GPU names job 1001 and is busy; another's pod is no job of the log; a third is nobody's.
    assert (idle["idle"]["num_jobs"], idle["idle"]["idle"]) == (1, 0.0)
    assert (idle["idle"]["unknown_jobs"], idle["idle"]["left_out"]) == (1, 1)
    assert idle["metric"] == "DCGM_FI_DEV_GPU_UTIL"
    lazy = run("report", "waste", log, *more, "--idle-at", "80").json
    assert lazy["idle"]["idle"] == pytest.approx(8 * 93784)
    killed = run("whatif", log, *more, "--idle-kill", "1h", "--anyway").json
    assert any("idle rule would have hit 0 jobs" in note for note in killed["notes"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("report", "waist", "x"), "Did you mean 'waste'"),
        (("report", "nowhere.txt"), "nowhere.txt: expected a file"),
        (("report", "cost", "{log}"), "--price X or --prices"),
        (("report", "cost", "{log}", "--price", "1", "--carbon", "5"), "--power"),
        (("report", "cost", "{log}", "--price", "1", "--to", "focus"), "--out bill.csv"),
        (("report", "cost", "{log}", "--price", "1", "--out", "{log}.csv"), "--to focus"),
        (("report", "queue", "{log}", "--quotas", "{log}"), "TOML"),
        (("report", "waste", "{log}", "--metric", "x"), "--telemetry"),
        (("report", "waste", "{log}", "--out", "{log}"), "ending"),
        (("predict", "wait", "{log}"), "--gpus"),
        (("predict", "wait", "{log}", "--gpus", "inf"), "number of GPUs"),
        (("predict", "wait", "{log}", "--gpus", "1", "--vc", "nlp"), "found vc 'nlp'"),
        (("predict", "wait", "{log}", "--gpus", "1", "--at", "noon"), "expected seconds"),
        (("predict", "wait", "{log}", "--gpus", "1", "--coverage", "80"), "between 0 and 1"),
        (("predict", "wait", "{log}", "--gpus", "1", "--at", "0"), "no GPU job had started"),
        (("validate", "{log}", "--policies", "fito"), "Did you mean 'fifo'"),
        (("whatif", "{log}"), "what is to change"),
        (("whatif", "{log}", "--nodes", "4"), "+4, -2"),
        (("whatif", "{log}", "--nodes", "-99"), "one must stay"),
        (("whatif", "{log}", "--nodes", "+0"), "+4, -2"),
        (("whatif", "{log}", "--surface", "nodes=a"), "whole numbers above 0"),
        (("whatif", "{log}", "--idle-kill", "1h"), "--telemetry"),
        (("whatif", "{log}", "--nodes", "+1", "--telemetry", "x"), "needs --idle-kill"),
        (("whatif", "{log}", "--keep-p90-wait", "1h", "--price", "2"), "leave it out"),
        (("whatif", "{log}", "--surface", "nodes=3..4/1", "--blocks", "users"), "leave it out"),
        (("whatif", "{log}", "--quotas", "x.toml"), "x.toml"),
        (("whatif", "{log}", "--limits", "0.5"), "1 (exact) or more"),
        (("whatif", "{log}", "--nodes", "+1"), "does not stand for the record"),
        (("whatif", "{log}", "--keep-p90-wait", "1h"), "--anyway"),
    ],
)
def test_what_is_refused(
    refused: Callable[..., str], hostile: Path, words: tuple[str, ...], message: str
) -> None:
    assert message in refused(*(word.replace("{log}", str(hostile)) for word in words))


def test_telemetry_knows_tasks_and_runs_by_raw_ids(run: Callable[..., Any], tmp_path: Path) -> None:
    """Task 17_1 is idle for its hour; job 7 is busy in its first run, and idle in its second."""
    times = {"17_1|21": (0, 3600), "7|7": (0, 3600)}
    again = ("7|7", 7200, 10800)
    log = "JobID|JobIDRaw|State|Submit|Start|End|ElapsedRaw|AllocTRES\n"
    for name, begin, end in (*((n, *span) for n, span in times.items()), again):
        log += f"{name}|COMPLETED|{10**9 + begin}|{10**9 + begin}|{10**9 + end}|3600|gres/gpu=1\n"
    (tmp_path / "log.txt").write_text(log, encoding="utf-8")
    samples = [(21, 0, 0), (7, 0, 9), (7, 7200, 0)]
    text = "".join(
        f'DCGM_FI_DEV_GPU_UTIL{{gpu="{job}",Hostname="n",hpc_job="{job}"}} {value} '
        f"{(10**9 + begin + step) * 1000}\n"
        for job, begin, value in samples
        for step in range(0, 3600, 600)
    )
    (tmp_path / "use.prom").write_text(text, encoding="utf-8")
    words = (tmp_path / "log.txt", "--telemetry", tmp_path / "use.prom", "--json")
    data = run("report", "waste", *words).json
    assert {row["job_id"]: row["idle"] for row in data["worst"]} == {"17_1": 3600.0, "7#2": 3600.0}
    assert (data["idle"]["num_jobs"], data["idle"]["unknown_jobs"]) == (3, 0)


def test_a_request_that_no_log_has_seen(
    run: Callable[..., Any], refused: Callable[..., str], hostile: Path
) -> None:
    data = run("predict", "wait", hostile, "--gpus", "9", "--json").json
    assert any("the largest asked for 8)" in note for note in data["notes"])
    usual = run("predict", "wait", hostile, "--gpus", "8", "--json").json
    assert not any("largest" in note for note in usual["notes"])
    alone = run("predict", "wait", hostile, "--gpus", "8", "--user", "../../etc/passwd", "--json")
    assert any("name it, too: --vc" in note for note in alone.json["notes"])
    twin = ("predict", "wait", "synthetic:kalos:jobs=200")
    assert "would never start" in refused(*twin, "--gpus", "2417")


def test_jobs_of_unknown_gpu_time_are_noted(run: Callable[..., Any], tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text(
        "job_id,submit_time,start_time,duration,num_gpus\na,0,0,60,1\nb,0,0,,1\nc,0,0,60,\n",
        encoding="utf-8",
    )
    for words in (("waste", log), ("cost", log, "--price", "60")):
        data = run("report", *words, "--json").json
        assert sum(data["left_out"].values()) == 2
        assert data["gpu_time"] == 60.0
        assert "In no sum of GPU hours: 1 job whose run time is not known." in data["notes"]


def test_no_bill_without_a_cluster_or_starts(
    run: Callable[..., Any], refused: Callable[..., str], lecture: Path
) -> None:
    """Jobs whose starts nobody knows held GPUs all the same: a bill of nothing would be wrong."""
    assert "--cluster 64x8:A100" in refused("report", "cost", lecture, "--price", "1")
    data = run("report", "cost", lecture, "--price", "1", "--cluster", "pool:2", "--json").json
    assert data["allocated"] == pytest.approx(105 / 3600)


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (("--to-policy", "sjf"), "policy sjf"),
        (("--to-queueing", "easy"), "queueing easy"),
        (("--to-cluster", "3x8:A100,1x4:T4"), "the cluster 3x8:A100,1x4:T4"),
        (("--quotas", "{quotas}"), "quotas"),
        (("--limits", "1.5", "--to-queueing", "easy"), "time limits 1.5 times"),
        (("--share", "0.5", "--slowdown", "share=0.9"), "0.5 of a GPU for jobs of one"),
        (("--nodes", "-1", "--prices", "{prices}", "--blocks", "users"), "1 node fewer"),
    ],
)
def test_every_change_can_be_asked_about(
    run: Callable[..., Any], tmp_path: Path, change: tuple[str, ...], expected: str
) -> None:
    names = {"user": ["u", "v"] * 150, "vc": ["a", "b"] * 150}
    log = tmp_path / "log.csv"
    write_csv(as_jobs({**jobs(), **names}), log)
    (tmp_path / "quotas.toml").write_text("a = 8\nb = 8\n", encoding="utf-8")
    (tmp_path / "prices.toml").write_text("default = 2\n", encoding="utf-8")
    words = [
        word.format(quotas=tmp_path / "quotas.toml", prices=tmp_path / "prices.toml")
        for word in change
    ]
    now = ("--cluster", "2x8", "--queueing", "skip", "--anyway")
    data = run("whatif", log, *now, *words, "--json").json
    assert any(expected in text for text in data["changes"])
    rows = {row["measure"]: row for row in data["measures"]}
    assert data["num_jobs"] == 300
    assert data["before"]["settings"]["queueing"] == "skip"
    assert data["verdict"]["failures"]
    for row in rows.values():
        assert row["change"] == pytest.approx(row["after"] - row["before"])
        assert row["low"] is None or row["low"] <= row["high"]
    assert rows["avg_wait"]["before"] == pytest.approx(data["before"]["metrics"]["avg_wait"])
    if "--to-policy" in change:
        assert data["after"]["settings"]["queueing"] == "skip"
    if "--prices" in change:
        assert rows["cost"]["after"] == pytest.approx(rows["cost"]["before"] / 2)


def test_no_cell_of_a_csv_file_runs_in_a_spreadsheet(
    run: Callable[..., Any], tmp_path: Path
) -> None:
    log, out = tmp_path / "log.csv", tmp_path / "out.csv"
    evil = jobs()
    evil["job_id"] = [f"{('=', '+', '-', '@', 'a')[k % 5]}{k}a" for k in range(len(evil["user"]))]
    write_csv(as_jobs(evil), log)
    ran = run("simulate", log, "--cluster", "2x8", "--out", out)
    assert (ran.code, ran.err) == (0, "")
    cells = [line.split(",")[0].strip('"') for line in out.read_text("utf-8").splitlines()[1:]]
    assert cells == [name if name[0] == "a" else f"'{name}" for name in evil["job_id"]]
