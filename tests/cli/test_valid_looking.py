"""Values that look right and are not, closed streams, long names: one sentence, never a fault."""

from __future__ import annotations

import bz2
import lzma
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

import windtunnel as wt
from windtunnel.errors import WindtunnelError

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
    ("words", "message"),
    [
        (
            "--cluster 2x2 --power POWER --power-cap 1e300",
            "power_cap.watts: found 1e+300",
        ),
        ("--cluster 2x2 --power POWER --power-cap 1e13", "to 1e+12 (W)"),
        ("--cluster 2x2 --shift series=SERIES,max_delay=1e300", "expected at most 3650d"),
        ("--cluster pool:99999999999999999999", "found 1e+20; expected at most 2,147,483,647"),
        ("--cluster v100:1" + "0" * 30 + ",k80:24 --policy gavel:max_min_fairness", "1e+30"),
        (
            "--cluster pool:2 --policy os:system",
            "the function that the policy names raised TypeError",
        ),
        ("--cluster pool:2 --policy ../x:f", "policy: cannot import '../x:f'"),
        ("--cluster pool:2 --power POWER --carbon LARGE", "line 2: expected a line of CSV"),
    ],
)
def test_a_value_that_looks_right_is_refused_in_one_sentence(
    refused: Callable[..., str], lecture: Path, files: dict[str, str], words: str, message: str
) -> None:
    for name, path in files.items():
        words = words.replace(name, path)
    assert message in refused("simulate", lecture, *words.split())


@pytest.mark.parametrize(
    "words", ["--policy exiting:decide", "--policy exiting:key", "--metrics exiting:metric"]
)
def test_code_of_the_user_s_that_exits_is_named(
    refused: Callable[..., str],
    lecture: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: str,
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    heads = ("decide(now, queue, cluster)", "key(job, now)", "metric(outcome)")
    functions = [f"def {head}:\n    sys.exit(0)\n" for head in heads]
    (tmp_path / "exiting.py").write_text("import sys\n" + "".join(functions))
    message = refused("simulate", lecture, "--cluster", "pool:2", *words.split())
    assert "exiting.py, line" in message
    assert "raised SystemExit (0)" in message


def test_a_module_that_exits_as_it_is_imported_is_named(
    refused: Callable[..., str], lecture: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "leaving.py").write_text("import sys\nsys.exit(5)\n")
    message = refused("simulate", lecture, "--cluster", "pool:2", "--policy", "leaving:decide")
    assert "cannot import 'leaving:decide': SystemExit: 5" in message


@pytest.mark.parametrize("option", ["--refresh-jobs", "--min-history", "--train-last"])
def test_counts_that_no_trace_has_are_refused(
    refused: Callable[..., str], lecture: Path, option: str
) -> None:
    message = refused("predict", "durations", lecture, option, 2**64 - 1)
    assert "found 18446744073709551615; expected a whole number of at most 2,147,483,647" in message


def test_more_requests_than_a_machine_holds_are_refused(refused: Callable[..., str]) -> None:
    message = refused("serving", "simulate", "--rate", "2e7")
    assert "expected at most 20,000,000 at once" in message


def test_the_largest_seed_is_one(run: Callable[..., Any], lecture: Path) -> None:
    words = ("--cluster", "2x2", "--seed", 2**64 - 1, "--placement", "random")
    assert run("simulate", lecture, *words, "--json").json["settings"]["seed"] == 2**64 - 1


@pytest.mark.parametrize(
    ("cluster", "options", "message"),
    [
        ("pool:99999999999999999999", {}, "expected at most 2,147,483,647"),
        ("3x2147483647", {}, "found 2,147,483,647"),
        (
            "2x2",
            {"power": POWER, "power_cap": 1e300},
            "power_cap.watts: found 1e+300",
        ),
        ("2x2", {"power": POWER, "power_cap": 1e13}, "to 1e+12 (W)"),
        ("2x2", {"shift": "series=SERIES,max_delay=1e300"}, "expected at most 3650d"),
        ("2x2", {"shift": "series=LARGE,max_delay=1h"}, "line 2: expected a line of CSV"),
        ("2x2", {"power": POWER, "carbon": "LARGE"}, "line 2: expected a line of CSV"),
        ("2x2", {"policy": "../x:f"}, "policy: cannot import '../x:f'"),
        (f"v100:1{'0' * 30},k80:24", {"policy": "gavel:max_min_fairness"}, "1e+30"),
        ("2x2", {"seed": -1, "placement": "random"}, "seed"),
        ("2x2", {"policy": "y" * 10_000}, "policy: unknown"),
    ],
)
def test_python_checks_what_the_command_checks(
    files: dict[str, str], cluster: str, options: dict[str, Any], message: str
) -> None:
    options = {
        key: value.replace("SERIES", files["SERIES"]).replace("LARGE", files["LARGE"])
        if isinstance(value, str)
        else value
        for key, value in options.items()
    }
    with pytest.raises(WindtunnelError) as caught:
        wt.simulate(JOBS, cluster, **options)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 2000


def test_the_largest_seed_is_one_in_python() -> None:
    assert wt.simulate(JOBS, "2x2", seed=2**64 - 1, placement="random").metrics()["num_jobs"] == 3


def test_a_name_of_ten_thousand_letters_is_cut(refused: Callable[..., str], lecture: Path) -> None:
    for words in (
        ("x" * 10_000,),
        (lecture, "--policy", "y" * 10_000),
        (lecture, "--" + "z" * 9000),
    ):
        message = refused("simulate", *words, "--cluster", "pool:2")
        assert len(message) < 2000


@pytest.mark.sample(1)
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


ASI = """\
pod_id,duration_hours,gpu_request,gpu_spec_public,job_type_public,schedule_delay_sec,priority_class
a,1,1,A100,x,3,HP
b,1,1,A100,x,3,LP
"""
SPOT = '{"metadata": {"gap_seconds": 300}, "data": [4, 3, 9, 2]}'


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("simulate LOG --cluster pool:4 --disruptions rsc", "Give a cluster of nodes, such as 4x8"),
        ("simulate LOG --cluster 2x4 --disruptions SPOT", "Give a cluster of 9 nodes or more."),
        ("simulate ASI --cluster 2x4", "No job has one: the trace can be described"),
        ("bench fifo --clairvoyant", "clairvoyant: is of policies of one's own"),
        ("describe BROKEN", "cannot be read as YAML"),
        ("simulate LOG --policy pollux:sia --models PIPES --cluster 2x4", "It is a pipe."),
        ("report cost LOG --price 1e308", "expected a price of an hour, from 0 to 1e+12"),
        ("whatif LOG --nodes +1 --cluster 2x4 --price 1e308", "from 0 to 1e+12"),
    ],
)
def test_what_is_wrong_is_reported_by_its_own_name(
    refused: Callable[..., str], lecture: Path, tmp_path: Path, words: str, message: str
) -> None:
    files = {"LOG": lecture, "SPOT": tmp_path / "spot.json", "ASI": tmp_path / "asi.csv"}
    files |= {"BROKEN": tmp_path / "broken", "PIPES": tmp_path / "pipes"}
    files["SPOT"].write_text(SPOT)
    files["ASI"].write_text(ASI)
    files["BROKEN"].mkdir()
    (files["BROKEN"] / "a.yaml").write_text("a: [\n")
    files["PIPES"].mkdir()
    os.mkfifo(files["PIPES"] / "a.json")
    assert message in refused(*(files.get(word, word) for word in words.split()))


@pytest.mark.parametrize(("name", "pack"), [("xz", lzma.compress), ("bz2", bz2.compress)])
def test_packed_logs_are_read_and_cut_ones_refused(
    run: Callable[..., Any],
    refused: Callable[..., str],
    lecture: Path,
    name: str,
    pack: Callable[[bytes], bytes],
) -> None:
    words = ("--cluster", "pool:2", "--json")
    plain = run("simulate", lecture, *words).json["avg_jct"]
    packed = lecture.with_name(f"lecture.csv.{name}")
    packed.write_bytes(pack(lecture.read_bytes()))
    assert run("simulate", packed, *words).json["avg_jct"] == plain
    packed.write_bytes(packed.read_bytes()[:-9])
    message = refused("simulate", packed, "--cluster", "pool:2", "--format", "native")
    assert "a whole packed file" in message


def test_a_packing_that_is_not_read_is_named(refused: Callable[..., str], tmp_path: Path) -> None:
    packed = tmp_path / "log.csv.zst"
    packed.write_bytes(b"\x28\xb5\x2f\xfd" + bytes(40))
    for words in ((), ("--format", "native")):
        message = refused("simulate", packed, "--cluster", "pool:2", *words)
        assert "It is packed with zstd: unpack it first." in message


def test_a_table_of_runs_has_the_numbers_of_a_short_queue(
    run: Callable[..., Any], lecture: Path, tmp_path: Path
) -> None:
    out = tmp_path / "runs.csv"
    words = ("--cluster", "2x2", "--policies", "fifo,srtf", "--out", out)
    assert run("compare", lecture, *words).code == 0
    assert '"stability"' not in out.read_text()
    assert '"avg_jct"' in out.read_text()


@pytest.mark.slow
def test_a_study_of_which_every_run_failed_fails(
    run: Callable[..., Any], lecture: Path, tmp_path: Path
) -> None:
    study = tmp_path / "study.toml"
    study.write_text(f'policies=["fifo"]\nclusters=["1x1"]\ntraces=["{lecture}"]\n')
    lecture.write_text(lecture.read_text().replace("30,1", "30,64"))
    ran = run("study", "run", study)
    assert ran.code == 2
    assert "every run gave an error" in ran.err
    assert "Failed" in ran.out
