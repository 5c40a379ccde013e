"""The operators' commands on logs of Slurms whose rules the tests alone know."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from hidden_site import World, world

from windtunnel.cli.root import windtunnel as main
from windtunnel.study.verdict import Verdict


def run(*words: Any) -> dict[str, Any]:
    told = CliRunner().invoke(main, [*map(str, words), "--json"])
    assert told.exit_code == 0, told.output
    found: dict[str, Any] = json.loads(told.stdout)
    return found


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> World:
    return world(tmp_path_factory.mktemp("small"), 1, num_jobs=300)


def test_with_slurms_files_now_is_the_record(small: World) -> None:
    log, etc = small.folder / "log.txt", small.folder / "etc"
    found = run("validate", log, "--slurm-conf", etc)
    (one,) = found["runs"]
    assert one["policy"] == "slurm"
    assert one["n"] == len(small.wait)  # CPU jobs, too
    assert one["recorded_avg_wait"] == pytest.approx(small.wait.mean())
    assert found["verdict"]["stands"]
    more = run("whatif", log, "--slurm-conf", etc, "--nodes", "+1:A100")
    wait = next(row for row in more["measures"] if row["measure"] == "avg_wait")
    assert wait["recorded"] == pytest.approx(small.wait.mean())
    assert wait["before"] == pytest.approx(one["avg_wait"])
    assert "6 nodes x 8 a100" in more["after"]["cluster"] or small.limits["a100"] != 5
    lower = run("whatif", log, "--slurm-conf", etc, "--nodes", "+1:a100")
    assert lower["measures"] == more["measures"]


def test_a_site_file_is_found_beside_the_log(small: World) -> None:
    log, etc = small.folder / "log.txt", small.folder / "etc"
    given = run("validate", log, "--slurm-conf", etc)
    site = small.folder / "site.toml"
    site.write_text('[site]\nslurm_conf = "etc"\n[scheduler]\npolicy = "slurm"\n', "utf-8")
    try:
        assert run("validate", log)["runs"] == given["runs"]
        assert run("report", "queue", log)["cluster"] == given["cluster"]
    finally:
        site.unlink()


def test_causes_are_the_true_ones(small: World) -> None:
    found = run("report", "queue", small.folder / "log.txt", "--slurm-conf", small.folder / "etc")
    gpus = np.array(small.jobs["num_gpus"]) > 0
    submit, first = (np.array(small.jobs[key]) for key in ("submit_time", "first_submit"))
    waited = found["wait"]
    assert waited == pytest.approx(small.wait[gpus].sum())
    assert sum(found["causes"].values()) == pytest.approx(waited)
    own = small.wait - (submit - first)
    truth = {
        "throttle": own[[r == "JobArrayTaskLimit" for r in small.reason] & gpus].sum(),
        "quota": own[[r.startswith(("QOS", "Assoc")) for r in small.reason] & gpus].sum(),
        "order": own[[r == "Priority" for r in small.reason] & gpus].sum(),
        "dependency": (submit - first)[gpus].sum(),
    }
    for cause, seconds in truth.items():
        assert found["causes"][cause] / waited == pytest.approx(seconds / waited, abs=0.05)


def test_every_job_has_an_answer(small: World) -> None:
    log = small.folder / "log.txt"
    cpu = small.jobs["num_gpus"].index(0)
    told = run("report", "queue", log, "--job", small.jobs["job_id"][cpu])
    assert told["job"]["wait"] == pytest.approx(small.wait[cpu])
    assert not told["job"]["in_line"]
    lines = (log).read_text("utf-8").splitlines()
    held = lines[-1].split("|")
    held[0], held[7], held[10], held[11], held[12] = "99999", "PENDING", "Unknown", "Unknown", "0"
    held[19], held[20] = "None assigned", "AssocGrpGRES"
    other = small.folder / "held.txt"
    other.write_text("\n".join([*lines, "|".join(held)]) + "\n", "utf-8")
    told = run("report", "queue", other, "--job", "99999")
    assert told["job"]["wait"] is None
    assert told["job"]["reason"] == "AssocGrpGRES"


def test_a_useless_replay_is_refused(small: World) -> None:
    log = small.folder / "log.txt"
    words = ["whatif", str(log), "--site", "500x8", "--policy", "fifo", "--nodes", "+4"]
    told = CliRunner().invoke(main, words)
    assert told.exit_code == 2
    assert "does not stand for the record" in told.stderr
    assert run(*words, "--anyway")["verdict"]["failures"]


@pytest.mark.parametrize(
    ("replayed", "bars"),
    [
        (lambda wait, _: np.zeros_like(wait), ("mean", "p90", "jobs")),
        (lambda wait, rng: rng.permutation(wait), ("jobs",)),
        (lambda wait, _: np.full_like(wait, wait.mean()), ("p90", "jobs")),
        (lambda wait, _: wait * 1.1, ()),
    ],
)
def test_no_useless_replay_stands(replayed: Any, bars: tuple[str, ...]) -> None:
    rng = np.random.default_rng(0)
    wait = rng.exponential(3600.0, 2000)
    assert Verdict.of(replayed(wait, rng), wait).failures == bars
