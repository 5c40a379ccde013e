"""The operators' commands on logs of Slurms whose rules the tests alone know."""

from __future__ import annotations

import json
import math
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from hidden_site import World, world

import windtunnel as wt
from windtunnel.cli.root import windtunnel as main
from windtunnel.policies.slurm.policy import Slurm
from windtunnel.policies.slurm.site_of import read_site_folder
from windtunnel.quantiles import quantiles
from windtunnel.site.conditions import Conditions
from windtunnel.study.agreement import agreement
from windtunnel.study.recording import Recording
from windtunnel.study.resolving import resolved
from windtunnel.study.site_file import read_site
from windtunnel.study.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable

    from windtunnel.site.slurm import SlurmSite


def run(*words: Any) -> dict[str, Any]:
    result = CliRunner().invoke(main, [*map(str, words), "--json"])
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> World:
    return world(tmp_path_factory.mktemp("small"), 1, num_jobs=300)


@pytest.fixture(scope="module")
def ranked(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], World]:
    """One whose pooled QOS has 1 % of all waiting, one with reservations, one of other limits."""
    seeds = {"QOSGrpGRES": 4, "reservations": 6, "priorities": 3}

    @cache
    def made(seed: int) -> World:
        folder = tmp_path_factory.mktemp("ranked")
        return world(folder, seed, num_jobs=400, is_ranked=True, is_held=seed == 6)

    return lambda name: made(seeds.get(name, 5))


@pytest.mark.slow
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
        gpus = 8 * small.limits["a100"] + 4 * small.limits["v100"]
        assert run("report", "cost", log, "--price", "1")["num_gpus"] == gpus
        flown = run("simulate", log)
        assert (flown["settings"]["policy"], flown["cluster"]["num_gpus"]) == ("slurm", gpus)
    finally:
        site.unlink()


def learnt(made: World) -> Path:
    site = made.folder / "site.toml"
    run("learn", made.folder / "log.txt", "--out", site)
    return site


def test_a_site_is_learnt_from_its_log(small: World) -> None:
    """Nodes, types, partitions, and every limit for which jobs waited 1 % of all waiting."""
    site = learnt(small)
    try:
        text = site.read_text("utf-8")
        found = resolved(read_site(site)).scheduler.policy.site
        true = read_site_folder(small.folder / "etc")
        assert [(n.name, n.gpus) for n in sorted(found.nodes, key=lambda n: n.name)] == [
            (n.name, n.gpus) for n in sorted(true.nodes, key=lambda n: n.name)
        ]
        parts = {part.name: set(part.nodes) for part in found.partitions}
        used = {"main": "ga", "quick": "gv", "cpu": "c"}
        for name, nodes in parts.items():
            assert {node for node in nodes if node.startswith(used[name])} == nodes
        bound = {
            "QOSMaxGRESPerUser": ("capped set MaxTRESPU=gres/gpu", "user_gpus"),
            "QOSGrpGRES": ("pooled set GrpTRES=gres/gpu", "group_gpus"),
            "AssocGrpJobsLimit": ("small set GrpJobs", "account_jobs"),
        }
        checked = 0
        for reason, (words, name) in bound.items():
            mine = small.wait[[r == reason for r in small.reason]].sum()
            if mine >= small.wait.sum() / 100:
                assert f"name={words}={small.limits[name]}\n" in text
                checked += 1
        assert checked
        assert run("validate", small.folder / "log.txt")["verdict"]["stands"]
        limit = run("whatif", small.folder / "log.txt", "--keep-p90-wait", "10h")["interval"]
        assert limit[0] is not None
    finally:
        site.unlink()


def test_the_ledger_adds_one_mechanism_after_another(small: World) -> None:
    log, etc = small.folder / "log.txt", small.folder / "etc"
    whole = run("validate", log, "--slurm-conf", etc)
    mechanisms = [entry["mechanism"] for entry in whole["ledger"]]
    assert mechanisms == ["nodes", "partitions", "eligibility", "arrays", "limits"]
    last = whole["ledger"][-1]
    assert last["avg_error"] == whole["verdict"]["avg_error"]
    assert last["explained"] > max(entry["explained"] for entry in whole["ledger"][:-1])
    assert whole["missing"] == []


def test_decisions_agree_the_more_the_more_is_known(small: World) -> None:
    """All of them where the throttles are known, too, which a log does not say of every array."""
    log, etc = small.folder / "log.txt", small.folder / "etc"
    entries = run("validate", log, "--slurm-conf", etc)["ledger"]
    shares = [entry["decisions"]["share"] for entry in entries]
    assert shares == sorted(shares)
    assert shares[0] < 0.5
    assert shares[-1] > 0.85
    known = Recording.of(wt.open_trace(str(log)).jobs, with_cpu_jobs=True).jobs
    throttles = dict(zip(small.jobs["job_id"], small.jobs["array_limit"], strict=True))
    column = pa.array([throttles[name] for name in known["job_id"].to_pylist()], pa.int64())
    complete = known.drop_columns(["array_limit"]).append_column("array_limit", column)
    given = resolved(Conditions().having(slurm_conf=str(etc), policy="slurm"))
    found = agreement(complete, given)
    assert found is not None
    assert (found.agreed, found.early, found.placed) == (found.starts, 0, found.starts)
    useless = agreement(complete, given.having(policy=Slurm(without_limits(given))))
    assert useless is not None
    assert useless.share < 0.9


def without_limits(conditions: Conditions) -> SlurmSite:
    site = conditions.scheduler.policy.site
    settings = msgspec.structs.replace(site.settings, enforce=frozenset())
    return msgspec.structs.replace(site, settings=settings)


#: What is taken out of Slurm's files -> a pattern of lines, and what stands there instead.
TAKEN_OUT = {
    "nodes": (r"ga\[01-(\d+)\]", "ga[02-\\1]"),
    "partitions": (r"PartitionName=quick .*\n", ""),
    "QOSMaxGRESPerUser": (r"MaxTRESPU=\S+", ""),
    "QOSGrpGRES": (r"GrpTRES=\S+", ""),
    "AssocGrpJobsLimit": (r"modify account .*\n", ""),
    "priorities": (r"priority/multifactor", "priority/basic"),
    "reservations": (r"ReservationName=.*\n.*\n", ""),
}


#: What the record shows of it, where that is not its own name.
EVIDENCE = {
    "nodes": "ga01",
    "partitions": "quick",
    "priorities": "Priority",
    "reservations": "ga02",
}


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", TAKEN_OUT)
def test_a_mechanism_that_is_taken_out_is_named(
    ranked: Callable[[str], World], tmp_path: Path, name: str
) -> None:
    """And nothing else is, of which the site has all."""
    pattern, instead = TAKEN_OUT[name]
    made = ranked(name)
    given = run("validate", made.folder / "log.txt", "--slurm-conf", made.folder / "etc")
    assert given["missing"] == []
    for file in (made.folder / "etc").iterdir():
        text, _ = re.subn(pattern, instead, file.read_text("utf-8"))
        (tmp_path / file.name).write_text(text, "utf-8")
    found = run("validate", made.folder / "log.txt", "--slurm-conf", tmp_path)["missing"]
    kind = "limits" if name.startswith(("QOS", "Assoc")) else name
    assert kind in [one["mechanism"] for one in found]
    missing = next(one for one in found if one["mechanism"] == kind)
    evidence = EVIDENCE.get(name, name)
    assert evidence in missing["evidence"]
    assert missing["recorded"] >= 0.01
    assert [one["mechanism"] for one in found if one["mechanism"] != kind] == []


@pytest.mark.parametrize("seed", [11, 12])
def test_a_cycle_that_ends_early_starts_the_same_jobs(tmp_path: Path, seed: int) -> None:
    """Where QOS may preempt each other, cycles test all jobs; here nobody has such a QOS."""
    made = world(tmp_path / "site", seed, num_jobs=400)
    etc = made.folder / "etc"
    flown = []
    for words in ("", "PreemptType=preempt/qos\nPreemptMode=REQUEUE\n"):
        conf = etc / "slurm.conf"
        conf.write_text(words + conf.read_text("utf-8"), "utf-8")
        if words:
            (etc / "above.sacctmgr").write_text(
                "add qos low\nadd qos top set Preempt=low\n", "utf-8"
            )
        out = wt.simulate(made.jobs, policy="slurm", slurm_conf=str(etc))
        conditions = resolved(Conditions().having(slurm_conf=str(etc), policy="slurm"))
        assert (conditions.scheduler.policy.site.settings.preempt == "qos") is bool(words)
        flown.append(out.table.select(["start_time", "end_time", "wait_reason"]))
    assert flown[0].equals(flown[1])


def commands() -> list[str]:
    page = Path(__file__).parents[2] / "docs" / "guides" / "operators.md"
    rows = re.findall(r"\| `windtunnel ([^`]*)` \|", page.read_text("utf-8"))
    return [word for row in rows for word in dict.fromkeys((re.sub(r" \[.*?\]", "", row),))]


@pytest.mark.sample(2)
@pytest.mark.parametrize("command", commands())
@pytest.mark.parametrize("spelling", ["a100", "A100"])
def test_the_page_of_operators_works_word_for_word(
    small: World, tmp_path: Path, command: str, spelling: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unlimited limits, CPU jobs, arrays, a running job; types in any case give the same."""
    monkeypatch.chdir(tmp_path)
    text = (small.folder / "log.txt").read_text("utf-8").replace("|lab|", "|nlp|")
    text = text.replace("gpu:a100", f"gpu:{spelling}")
    lines = text.splitlines()
    cells = lines[-1].split("|")
    cells[0], cells[7], cells[11] = "99999", "RUNNING", "Unknown"
    answers = []
    for name, kind in (("one", spelling), ("two", "a100")):
        folder = tmp_path / name
        folder.mkdir()
        here = "\n".join([*lines, "|".join(cells)]) + "\n"
        (folder / "log.txt").write_text(here.replace(f"gpu:{spelling}", f"gpu:{kind}"), "utf-8")
        conf = (small.folder / "etc" / "slurm.conf").read_text("utf-8")
        accounts = (small.folder / "etc" / "site.sacctmgr").read_text("utf-8")
        site = f"[site.slurm]\nconf = '''\n{conf}'''\naccounts = '''\n{accounts}'''\n"
        site = site.replace("lab", "nlp") + '[scheduler]\npolicy = "slurm"\n'
        (folder / "site.toml").write_text(site, "utf-8")
        words = command.replace("log.txt", str(folder / "log.txt"))
        words = words.replace("site.toml", str(folder / "new.toml")).split()
        if "--keep-p90-wait" in words:
            words[-1] = "12h"  # an hour cannot be kept by nodes there: limits bind
        answer = run(*words)
        answers.append({key: answer.get(key) for key in KEYS})
    assert answers[0] == answers[1]


#: What answers are compared by.
KEYS = ("causes", "wait", "total", "idle", "kinds", "quantiles", "runs", "measures", "num_nodes")


def test_a_site_file_names_slurms_own(small: World) -> None:
    log, site = small.folder / "log.txt", small.folder / "given.toml"
    run("learn", log, "--slurm-conf", small.folder / "etc", "--out", site)
    assert (
        run("validate", log, "--site", site)["runs"]
        == run("validate", log, "--slurm-conf", small.folder / "etc")["runs"]
    )
    for text, message in (
        ('[site.slurm]\nconf = "Include /etc/passwd"\n', "includes another file"),
        ('[site.slurm]\nconf = "a=1\\u2028include /etc/passwd"\n', "includes another file"),
        (
            '[site.slurm]\nconf = "NodeName=n1 CPUs=x"\n',
            "site.slurm.conf, column 'CPUs': found 'x'",
        ),
        ('[site.slurm]\nconfig = "x"\n', "Did you mean 'conf'"),
        ('[site.slurm]\nconf = "NodeName=n1"\n', "PartitionName"),
    ):
        site.write_text(text, "utf-8")
        result = CliRunner().invoke(main, ["validate", str(log), "--site", str(site)])
        assert (result.exit_code, message in result.stderr) == (2, True), result.stderr


@pytest.mark.slow
@pytest.mark.parametrize(("more", "size", "num_jobs"), [(1, 1, 500), (4, 4, 1500)])
def test_what_more_nodes_bring_lies_in_the_interval(
    tmp_path: Path, more: int, size: int, num_jobs: int
) -> None:
    """Of 40 sites learnt from their logs at least 26, by intervals of 80 %."""
    inside, widths = 0, []
    for seed in range(100, 140):
        made = world(tmp_path / str(seed), seed, num_jobs=num_jobs, size=size)
        learnt(made)
        log = made.folder / "log.txt"
        measure = run("whatif", log, "--nodes", f"+{more}:a100", "--anyway")["measures"][0]
        change = made.with_nodes(more).mean() - made.wait.mean()
        inside += measure["low"] <= change <= measure["high"]
        widths.append((measure["high"] - measure["low"]) / made.wait.mean())
    assert inside >= 26
    assert np.median(widths) <= 0.4


@pytest.mark.slow
def test_the_fewest_nodes_lie_in_the_interval(tmp_path: Path) -> None:
    """Of 40 sites at least 26, for limits drawn between what two numbers of nodes keep."""
    inside = 0
    for seed in range(200, 240):
        made = world(tmp_path / str(seed), seed, num_jobs=500)
        learnt(made)
        rng, now = np.random.default_rng(seed), made.limits["a100"]
        waits = {now + more: made.with_nodes(more) for more in range(-2, 5)}
        p90 = {nodes: float(quantiles(wait, 0.9)) for nodes, wait in waits.items()}
        aim = now + int(rng.integers(-1, 4))
        limit = float(rng.uniform(*sorted((p90[aim], p90[aim - 1]))))
        true = next(nodes for nodes in p90 if p90[nodes] <= limit)
        words = ("--keep-p90-wait", f"{limit:.0f}s", "--anyway")
        log = str(made.folder / "log.txt")
        result = CliRunner().invoke(main, ["whatif", log, *words, "--json"])
        if result.exit_code == 2:  # no number would do, by the replay
            continue
        low, high = json.loads(result.stdout)["interval"]
        inside += low <= true <= (math.inf if high is None else high)
    assert inside >= 26


def test_a_log_may_have_a_column_called_place(small: World, tmp_path: Path) -> None:
    jobs = wt.open_trace(small.folder / "log.txt").jobs.drop_columns(["reason"])
    found = []
    for name, table in (
        ("plain", jobs),
        ("placed", jobs.append_column("place", pa.array(["rack 7"] * len(jobs)))),
    ):
        file = tmp_path / f"{name}.parquet"
        pq.write_table(table, file)
        found.append(run("report", "queue", file, "--slurm-conf", small.folder / "etc"))
    assert "those given are of a replay under the site's Slurm" in str(found[1])
    assert found[0]["causes"] == found[1]["causes"]


@pytest.mark.parametrize("says_why", [True, False])
def test_causes_are_the_true_ones(small: World, tmp_path: Path, *, says_why: bool) -> None:
    log = small.folder / "log.txt"
    if not says_why:
        head, *lines = log.read_text(encoding="utf-8").splitlines()
        log = tmp_path / "log.txt"
        lines = [line.rpartition("|")[0] + "|None" for line in lines]
        log.write_text("\n".join([head, *lines]) + "\n", encoding="utf-8")
    found = run("report", "queue", log, "--slurm-conf", small.folder / "etc")
    is_noted = "those given are of a replay under the site's Slurm" in str(found)
    assert is_noted is not says_why
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
    causes = found["causes"]
    if not says_why:  # arrays' own limits are not known then: their tasks stand in line
        truth["order"] += truth.pop("throttle")
    for cause, seconds in truth.items():
        assert causes[cause] / waited == pytest.approx(seconds / waited, abs=0.05)


def test_every_job_has_an_answer(small: World) -> None:
    log = small.folder / "log.txt"
    cpu = small.jobs["num_gpus"].index(0)
    answer = run("report", "queue", log, "--job", small.jobs["job_id"][cpu])
    assert answer["job"]["wait"] == pytest.approx(small.wait[cpu])
    assert not answer["job"]["in_line"]
    lines = (log).read_text("utf-8").splitlines()
    held = lines[-1].split("|")
    held[0], held[7], held[10], held[11], held[12] = "99999", "PENDING", "Unknown", "Unknown", "0"
    held[19], held[20] = "None assigned", "AssocGrpGRES"
    other = small.folder / "held.txt"
    other.write_text("\n".join([*lines, "|".join(held)]) + "\n", "utf-8")
    answer = run("report", "queue", other, "--job", "99999")
    assert answer["job"]["wait"] is None
    assert answer["job"]["reason"] == "AssocGrpGRES"


def test_a_wait_is_given_among_jobs_alike(small: World) -> None:
    log = small.folder / "log.txt"
    wait = ("predict", "wait", log, "--gpus", "1", "--partition", "quick")
    quick = run(*wait, "--gpu-type", "V100")
    assert quick["among"] == {"partition": "quick", "gpu_type": "V100", "qos": None}
    mine = [at for at, name in enumerate(small.jobs["partition"]) if name == "quick"]
    assert quick["quantiles"] == run(*wait)["quantiles"]  # all of them are
    assert quick["quantiles"]["90"] <= small.wait[mine].max()
    result = CliRunner().invoke(main, [*map(str, wait[:-1]), "quik"])
    assert (result.exit_code, "did you mean 'quick'" in result.stderr) == (2, True)
    few = run(*wait, "--time-limit", "1h", "--qos", "normal")
    assert any("time limit 3600 s" in note for note in few["notes"])


def test_a_useless_replay_is_refused(small: World) -> None:
    log = small.folder / "log.txt"
    words = ["whatif", str(log), "--site", "500x8", "--policy", "fifo", "--nodes", "+4"]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 2
    assert "does not stand for the record" in result.stderr
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
