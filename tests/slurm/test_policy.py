"""Policy ``slurm``: a trace under slurmctld's clock, by a site's own files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

import windtunnel as wt
from windtunnel.cli.root import windtunnel as main
from windtunnel.energy.power_policies import PowerCap
from windtunnel.errors import PolicyError
from windtunnel.policies.slurm.site_of import cluster_of_site, read_site_folder
from windtunnel.sim.disruptions import Disruptions, NodeFailure

if TYPE_CHECKING:
    from pathlib import Path

CONF = """
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
PriorityType=priority/basic
AccountingStorageEnforce=limits,qos
NodeName=g[1-4] CPUs=32 RealMemory=256000 Gres=gpu:A100:8
NodeName=c[1-2] CPUs=32 RealMemory=128000
PartitionName=gpu Nodes=g[1-4] Default=YES MaxTime=1-0
PartitionName=cpu Nodes=c[1-2] MaxTime=INFINITE
"""
ACCOUNTS = """
add account lab
add user ann account=lab MaxJobs=1
add user bob account=lab
"""
JOBS: dict[str, list[Any]] = {
    "submit_time": [0, 0, 1, 1, 2],
    "duration": [600, 600, 60, 60, 100],
    "estimate": [1200, 1200, 120, 172_800, None],
    "num_gpus": [8, 8, 0, 8, 32],
    "num_cpus": [8, 8, 32, 8, 64],
    "user": ["ann", "ann", "bob", "bob", "bob"],
    "account": ["lab"] * 5,
    "partition": ["gpu", "gpu", "cpu", "gpu", "gpu"],
}


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    (tmp_path / "slurm.conf").write_text(CONF)
    (tmp_path / "accounts.sacctmgr").write_text(ACCOUNTS)
    return tmp_path


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_a_site_of_slurms_files(conf: Path, engine: Any) -> None:
    out = wt.simulate(JOBS, policy="slurm", slurm_conf=str(conf), engine=engine)
    table = out.table.to_pydict()
    # The first is seen a second after it came; ann's second waits for her limit, and is looked at
    # one second after her first has ended. The CPU job is part of the next request, three seconds
    # later. What asks for more time than its partition gives is never started.
    assert table["start_time"] == [1, 602, 4, None, 1203]
    assert table["status"] == ["finished", "finished", "finished", "rejected", "finished"]
    assert table["reason"][3] == "Slurm never starts it: PartitionTimeLimit"
    assert table["wait_reason"] == [None, "AssocMaxJobsLimit", None, None, "Resources"]
    assert table["nodes"][4] == [0, 1, 2, 3]
    assert out.settings["slurm_conf"] == str(conf)
    assert (out.settings["placement"], out.settings["queueing"]) == ("policy", "policy")


def test_the_loops_go_by_the_sites_clocks(conf: Path) -> None:
    more = "SchedulerParameters=defer,batch_sched_delay=10,bf_interval=300,bf_busy_nodes\n"
    (conf / "slurm.conf").write_text(CONF + more)
    out = wt.simulate(JOBS, policy="slurm", slurm_conf=str(conf))
    # The second request is ten seconds after the first; ends are requests like submissions. Those
    # of 601 and 1210 come after the full runs of 600 and 1200, and wait ten seconds from them.
    assert out.table["start_time"].to_pylist() == [1, 610, 11, None, 1211]
    assert "these decide nothing here: bf_busy_nodes." in " ".join(out.notes)


def test_the_files_are_a_cluster_for_every_policy(conf: Path) -> None:
    cluster = cluster_of_site(read_site_folder(conf), "site")
    assert cluster.describe() == "32 GPUs: 4 nodes x 8 a100, 2 nodes x 0 GPUs"
    out = wt.simulate(JOBS, policy="fifo", slurm_conf=str(conf))
    assert out.cluster.num_gpus == 32
    assert out.table["start_time"].to_pylist()[:2] == [0, 0]


def test_a_backfill_cycle_starts_what_ends_in_time() -> None:
    jobs = {
        "submit_time": [0, 0, 1, 5, 6],
        "duration": [300, 100, 250, 50, 50],
        "estimate": [300, 240, 300, 60, 400],
        "num_gpus": [8, 4, 16, 2, 2],
    }
    out = wt.simulate(jobs, "2x8:A100", policy="slurm")
    # The last asks for longer than the reservation of the third leaves.
    assert out.table["start_time"].to_pylist() == [1, 1, 302, 31, 553]


def _starts(
    cluster: str, *rows: tuple[float, float, float, int], engine: Any, **options: Any
) -> list[Any]:
    """Fly jobs of (submit, duration, time limit, GPUs)."""
    names = ("submit_time", "duration", "estimate", "num_gpus")
    jobs = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    out = wt.simulate(jobs, cluster, policy="slurm", engine=engine, **options)
    return out.table["start_time"].to_pylist()


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_cycles_follow_each_other_where_nothing_happens(engine: Any) -> None:
    # The third needs all nodes, and has them from slot 780 on. The fourth could have the second's
    # node and the idle one at 599, and by its slots end by 780: until then they are its own, from
    # 540 on, and the fifth would run into that. A cycle from 541 on sees that the fourth, begun
    # then, would run into 780, and looks for it beyond; from then on the fifth is in nobody's way.
    # Cycles are each 30 s from 59 on, when the second came and began: that of 569 starts it.
    jobs = [(0, 780, 780, 2), (58, 540, 540, 2), (60, 60, 180, 6), (61, 60, 240, 4)]
    starts = _starts("3x2", *jobs, (400, 60, 180, 1), engine=engine)
    assert starts == [1, 59, 782, 843, 569]


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_a_cycle_that_finds_nobody_is_one(engine: Any) -> None:
    # The first ends at 101, and a cycle is at 102; so the next is at 132, with three who came at
    # 110. The main loop of 111 starts one, and the cycle one that ends before that other does.
    jobs = [(0, 100, 120, 8), (110, 300, 300, 8), (110, 60, 60, 16), (110, 50, 60, 8)]
    assert _starts("2x8", *jobs, engine=engine) == [1, 111, 412, 132]


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_an_end_asks_for_those_who_waited_then(engine: Any) -> None:
    # The main loop of second 2 is for the end at 1.5, and too early for who comes at 2; submissions
    # were looked at in second 1, and are again three seconds later.
    assert _starts("2x8", (0, 0.5, 60, 8), (2, 60, 60, 8), engine=engine) == [1, 4]


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_submissions_wait_for_their_delay_after_a_full_run_too(engine: Any) -> None:
    # A full run is at 60. No cycle is before 81: thirty seconds after the last, of 51.
    jobs = [(second, 600, 600, 1) for second in (50, 58, 60, 61, 63, 70)]
    assert _starts("2x8", *jobs, engine=engine) == [51, 59, 63, 63, 66, 71]


def test_a_run_for_an_end_serves_submissions_too(tmp_path: Path) -> None:
    # The third came at 62, and began by the cycle of 63; the main loop was to look at it at 71, ten
    # seconds after it had at the second. That is done with the run of 65 for the end of the second,
    # so that the fourth waits for no more than a second.
    more = "SchedulerParameters=batch_sched_delay=10,bf_interval=30,sched_interval=1000\n"
    (tmp_path / "slurm.conf").write_text(CONF + more)
    jobs = {"submit_time": [32, 60, 62, 72], "duration": [500, 3, 400, 50], "num_gpus": [1] * 4}
    out = wt.simulate(jobs | {"partition": ["gpu"] * 4}, policy="slurm", slurm_conf=str(tmp_path))
    assert out.table["start_time"].to_pylist() == [33, 61, 63, 73]


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_who_lacked_power_is_looked_at_in_the_next_cycle(engine: Any) -> None:
    # The main loop and a cycle are in second 126; there is power for the second from 140 on.
    options: dict[str, Any] = {
        "power": {"gpus": {"default": {"idle_w": 0, "active_w": 100}}},
        "power_cap": PowerCap(rows=((0, 400), (140, 800))),
    }
    jobs = [(0, 1000, 1020, 4), (125, 50, 60, 4)]
    assert _starts("1x8", *jobs, engine=engine, **options) == [1, 156]


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_delays_move_the_cycles_in_which_nobody_could_begin(engine: Any) -> None:
    # At every multiple of 20. Cycles are at 40, as the first came, 80, 120 and 160, each 30 s after
    # the last and delayed; nobody who waits could begin in that of 120. The one of 160 starts the
    # third, which ends before the first does; the second has the whole node at 260.
    jobs = [(31, 200, 200, 1), (71, 20, 20, 8), (131, 60, 60, 1), (151, 100, 200, 8)]
    assert _starts("1x8", *jobs, engine=engine, decide_every=20) == [40, 260, 160, 300]


@pytest.mark.parametrize("engine", ["compiled", "reference"])
@pytest.mark.parametrize("failure", [89, 90, 91])
def test_delayed_failures_come_in_their_order(failure: int, engine: Any) -> None:
    jobs = [(0, 1000, 1000, 8), (0, 30, 60, 2), (70, 60, 60, 16), (75, 20, 30, 6)]
    down = Disruptions(node_failures=(NodeFailure(node=0, time=failure, until=5000),))
    found = _starts("2x8", *jobs, engine=engine, decide_every=30, disruptions=down)
    assert found[3] == 90


def test_loops_end_where_nobody_runs_who_could_be_stopped(tmp_path: Path) -> None:
    (tmp_path / "slurm.conf").write_text(
        f"{CONF}PreemptType=preempt/partition_prio\nPreemptMode=REQUEUE\n"
    )
    jobs = {"submit_time": [0, 10], "duration": [5, 60], "num_gpus": [8, 32], "num_cpus": [8, 32]}
    down = Disruptions(node_failures=(NodeFailure(node=3, time=7),))
    out = wt.simulate(
        jobs | {"partition": ["gpu", "gpu"]}, policy="slurm", slurm_conf=str(tmp_path),
        disruptions=down,
    )  # fmt: skip
    assert out.table["status"].to_pylist() == ["finished", "waiting"]
    assert out.flight.scheduling_points < 50


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_a_failed_nodes_job_waits_again(engine: Any) -> None:
    jobs = {"submit_time": [0], "duration": [100], "estimate": [100], "num_gpus": [8]}
    out = wt.simulate(
        jobs,
        "1x8:A100",
        policy="slurm",
        disruptions={"node_failures": [{"time": 50, "until": 200, "node": 0}]},
        engine=engine,
    )
    segments = out.segments
    assert segments["start"].to_pylist()[0] == 1
    assert 200 <= segments["start"].to_pylist()[1] <= 204
    assert out.table["num_failures"].to_pylist() == [1]


@pytest.mark.parametrize("engine", ["compiled", "reference"])
@pytest.mark.parametrize(
    ("every", "starts"),
    [
        # Decisions of seconds 1, 31 (a backfill cycle) and 302 (a second after the first ended).
        (None, [1, 1, 302, 31]),
        (2, [2, 2, 304, 32]),
        # The last has come by the first decision; 7 + 300 is an end within second 307, seen at 308.
        (7, [7, 7, 308, 7]),
        (45.5, [45.5, 45.5, 364, 45.5]),
    ],
)
def test_delayed_decisions_miss_nothing(every: float | None, starts: Any, engine: Any) -> None:
    jobs = {
        "submit_time": [0, 0, 1, 5],
        "duration": [300, 100, 250, 50],
        "estimate": [300, 240, 300, 60],
        "num_gpus": [8, 4, 16, 2],
    }
    out = wt.simulate(jobs, "2x8:A100", policy="slurm", decide_every=every, engine=engine)
    assert out.table["start_time"].to_pylist() == starts


@pytest.mark.parametrize(("every", "second"), [(None, 91), (7, 77), (40, 120)])
def test_a_cycle_that_is_due_between_decisions_is_made_at_the_next(
    every: float | None, second: float
) -> None:
    # The last waits behind the third for a cycle, and a node for it is free 64 s after the second
    # began. Cycles are at 1, 31, 61 and 91; every 7 s at 7, 42 (due at 37) and 77 (due at 72);
    # every 40 s at 40, 80 (due at 70) and 120 (due at 110).
    jobs = {
        "submit_time": [0, 0, 2, 62],
        "duration": [600, 64, 100, 50],
        "estimate": [600, 120, 120, 60],
        "num_gpus": [8, 8, 16, 8],
    }
    out = wt.simulate(jobs, "2x8:A100", policy="slurm", decide_every=every)
    assert out.table["start_time"][3].as_py() == second


def test_priorities_are_calculated_under_delayed_decisions(tmp_path: Path) -> None:
    (tmp_path / "slurm.conf").write_text(
        "PriorityType=priority/multifactor\nPriorityWeightAge=1000\nPriorityMaxAge=0-01:00:00\n"
        "PriorityWeightJobSize=500\nPriorityFavorSmall=NO\n"
        "NodeName=g[1-2] CPUs=8 Gres=gpu:8\nPartitionName=all Nodes=ALL Default=YES\n"
    )
    jobs = {
        "submit_time": [0, 2, 1800],
        "duration": [3600, 100, 100],
        "estimate": [3600, 120, 120],
        "num_gpus": [16, 8, 16],
    }
    out = wt.simulate(jobs, policy="slurm", slurm_conf=str(tmp_path), decide_every=10)
    # The second has waited for an hour by 3610 and is worth 1,250; the third 1,000 at most. As they
    # came it was 250 against 500.
    starts = out.table["start_time"].to_pylist()
    assert starts[1] < starts[2]


PREEMPTING = """
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
PriorityType=priority/basic
PreemptType=preempt/partition_prio
PreemptMode={mode}
NodeName=g[1-2] CPUs=8 Gres=gpu:A100:8
PartitionName=idle Nodes=ALL Default=YES PriorityTier=1 {more}
PartitionName=owner Nodes=ALL PriorityTier=10 PreemptMode=OFF
"""
PREEMPTED = {
    "submit_time": [0, 0, 50],
    "duration": [300, 300, 100],
    "estimate": [600, 600, 120],
    "num_gpus": [8, 8, 8],
    "partition": ["idle", "idle", "owner"],
}


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_who_is_requeued_runs_again_from_the_beginning(tmp_path: Path, engine: Any) -> None:
    (tmp_path / "slurm.conf").write_text(PREEMPTING.format(mode="REQUEUE", more=""))
    out = wt.simulate(PREEMPTED, policy="slurm", slurm_conf=str(tmp_path), engine=engine)
    table = out.table.to_pydict()
    # Of equal candidates the first goes first, at second 51; its node is free a second later. It
    # may begin 121 s after that, and is looked at by the next cycle.
    assert table["start_time"] == [1, 1, 52]
    assert table["num_preemptions"] == [1, 0, 0]
    assert table["lost_time"] == [50, 0, 0]
    starts = dict(zip(out.segments["start"].to_pylist(), out.segments["row"].to_pylist(),
                      strict=True))  # fmt: skip
    again = max(start for start, row in starts.items() if row == 0)
    assert 173 <= again <= 203
    assert table["end_time"] == [again + 300, 301, 152]


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_who_is_cancelled_goes_on_for_its_grace(tmp_path: Path, engine: Any) -> None:
    (tmp_path / "slurm.conf").write_text(PREEMPTING.format(mode="CANCEL", more="GraceTime=60"))
    out = wt.simulate(PREEMPTED, policy="slurm", slurm_conf=str(tmp_path), engine=engine)
    table = out.table.to_pydict()
    # Asked at 51 to end by 111: a cycle that looks then finds its time over.
    assert table["status"] == ["failed", "finished", "finished"]
    assert table["start_time"] == [1, 1, 112]
    assert table["lost_time"] == [110, 0, 0]


@pytest.mark.parametrize(
    ("more", "filled"), [("", 353), ("KillWait=300", 121), ("OverTimeLimit=5", 121)]
)
def test_when_an_overdue_job_is_expected_to_end(tmp_path: Path, more: str, filled: int) -> None:
    (tmp_path / "slurm.conf").write_text(
        f"NodeName=g[1-2] CPUs=8 Gres=gpu:8\nPartitionName=all Nodes=ALL Default=YES\n{more}\n"
    )
    jobs = {
        "submit_time": [0, 2, 2],
        "duration": [300, 50, 100],
        "estimate": [120, 60, 180],
        "num_gpus": [8, 16, 8],
    }
    out = wt.simulate(jobs, policy="slurm", slurm_conf=str(tmp_path))
    # The first is past its limit from 121 on. For the cycle of 121 it ends KillWait (30 s) and
    # OverTimeLimit later: the second has both nodes from slot 120 on, and the third, which asks for
    # three minutes, goes behind it. With 300 s more that is slot 420, and the third ends in time.
    assert out.table["start_time"].to_pylist() == [1, 302, filled]


def test_nobody_is_suspended(tmp_path: Path) -> None:
    (tmp_path / "slurm.conf").write_text(PREEMPTING.format(mode="SUSPEND,GANG", more=""))
    out = wt.simulate(PREEMPTED, policy="slurm", slurm_conf=str(tmp_path))
    assert out.table["start_time"].to_pylist() == [1, 1, 302]
    assert "Nobody is suspended" in " ".join(out.notes)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"placement": "spread"}, "chooses whole GPUs"),
        ({"sharing": "devices"}, "chooses whole GPUs"),
        ({"queueing": "easy"}, "queueing"),
        ({"disruptions": {"reservations": [{"start": 1, "end": 2, "nodes": [0], "users": ["a"]}]}},
         "reservations of its own"),
    ],
)  # fmt: skip
def test_what_slurm_decides_itself_is_refused(options: Any, message: str) -> None:
    jobs = {"submit_time": [0], "duration": [100], "num_gpus": [8]}
    with pytest.raises((wt.SpecError, wt.PolicyError), match=message):
        wt.simulate(jobs, "1x8:A100", policy="slurm", **options)


def test_other_nodes_than_the_sites_are_refused(conf: Path) -> None:
    with pytest.raises(wt.PolicyError, match="leave --cluster out"):
        wt.simulate(JOBS, "8x8:A100", policy="slurm", slurm_conf=str(conf))


def test_the_command(conf: Path) -> None:
    rows = ["job_id,submit_time,duration,num_gpus,num_cpus,user,account,partition,estimate"]
    rows += ["1,0,600,8,8,ann,lab,gpu,1200", "2,0,600,8,8,ann,lab,gpu,1200"]
    jobs, out = conf / "jobs.csv", conf / "out.csv"
    jobs.write_text("\n".join(rows))
    (conf / "site.toml").write_text('[site]\nslurm_conf = "."\n[scheduler]\npolicy = "slurm"\n')
    for options in (["--slurm-conf", str(conf)], ["--site", str(conf / "site.toml")]):
        found = CliRunner().invoke(main, ["simulate", str(jobs), *options, "--out", str(out)])
        assert found.exit_code == 0, found.output
        assert "AssocMaxJobsLimit" in out.read_text()
    found = CliRunner().invoke(main, ["simulate", str(jobs), "--slurm-conf", str(conf / "no")])
    assert found.exit_code == 2
    assert "Slurm's configuration folder" in found.output


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("slurm.conf", "CPUs=32", "CPUs=many"),
        ("slurm.conf", "CPUs=32", "CPUs=9999999999999"),
        ("slurm.conf", "CPUs=32", "CoresPerSocket=x"),
        ("slurm.conf", "SelectType=", "PriorityWeightTRES=cpu=x\nSelectType="),
        ("slurm.conf", "SelectType=", "SchedulerParameters=bf_interval=soon\nSelectType="),
        ("slurm.conf", "NodeName=g[1-4]", "NodeName=g[1-"),
        ("accounts.sacctmgr", "MaxJobs=1", "MaxJobs=few"),
        ("accounts.sacctmgr", "MaxJobs=1", "Fairshare=some"),
        ("accounts.sacctmgr", "add account lab", 'add account "lab'),
    ],
)
def test_what_the_files_say_wrong_is_refused(conf: Path, file: str, old: str, new: str) -> None:
    text = (conf / file).read_text()
    assert old in text
    (conf / file).write_text(text.replace(old, new, 1))
    with pytest.raises((wt.TraceError, wt.SpecError), match=r"expected"):
        wt.simulate(JOBS, policy="slurm", slurm_conf=str(conf))


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_jobs_wait_for_licences_and_hold_up_nobody(conf: Path, engine: Any) -> None:
    (conf / "slurm.conf").write_text(CONF + "Licenses=matlab:2,ansys@flex\n")
    jobs = {
        "submit_time": [0, 0, 1, 2, 3, 4],
        "duration": [300, 100, 250, 50, 20, 30],
        "estimate": [300, 240, 300, 60, 60, 60],
        "num_gpus": [8, 4, 4, 2, 1, 1],
        "licenses": ["matlab:2", "ansys@flex", "matlab", None, "matlab:3", "fluent"],
    }
    out = wt.simulate(jobs, policy="slurm", slurm_conf=str(conf), engine=engine, oversize="reject")
    table = out.table.to_pydict()
    # GPUs are free all along. The third gets its licence when the first gives back both; the one
    # behind it has begun by then. More than there are, or others, nobody waits for.
    assert table["start_time"] == [1, 1, 302, 4, None, None]
    assert table["wait_reason"][2] == "Licenses"
    assert table["reason"][4:] == ["Slurm never starts it: Licenses"] * 2


def test_licences_that_are_no_licences_are_refused(conf: Path) -> None:
    jobs = {"submit_time": [0], "duration": [1], "num_gpus": [1], "licenses": ["a|b"]}
    with pytest.raises(wt.SchemaError, match=r"matlab:2,ansys; found 'a\|b'"):
        wt.simulate(jobs, policy="slurm", slurm_conf=str(conf))
    (conf / "slurm.conf").write_text(CONF + "Licenses=matlab:x\n")
    with pytest.raises(wt.TraceError, match="'matlab:x'"):
        wt.simulate(jobs, policy="slurm", slurm_conf=str(conf))


def test_a_time_beyond_slurms_clock_is_refused() -> None:
    jobs = {"submit_time": [0.0], "duration": [10.0], "num_gpus": [1.0]}
    with pytest.raises(PolicyError, match="Slurm counts whole seconds"):
        wt.simulate(jobs, "1x4", "slurm", decide_every=1e300)


@pytest.mark.parametrize(
    ("more", "reasons"),
    [
        ("AllowAccounts=ALL AllowQos=ALL", [None, None]),
        ("AllowAccounts=lab,other", [None, "AccountNotAllowed"]),
        ("DenyAccounts=lab", ["AccountNotAllowed", None]),
        ("AllowAccounts=lab DenyAccounts=lab", [None, "AccountNotAllowed"]),
        ("AllowQos=high", ["QOSNotAllowed", None]),
        ("DenyQos=high", [None, "QOSNotAllowed"]),
    ],
)
def test_whose_jobs_a_partition_takes(tmp_path: Path, more: str, reasons: list[str | None]) -> None:
    (tmp_path / "slurm.conf").write_text(
        f"NodeName=g[1-2] CPUs=8 Gres=gpu:8\nPartitionName=all Nodes=ALL Default=YES {more}\n"
    )
    jobs = {
        "submit_time": [0, 0],
        "duration": [60, 60],
        "estimate": [60, 60],
        "num_gpus": [8, 8],
        "account": ["lab", "guests"],
        "qos": ["normal", "high"],
    }
    out = wt.simulate(jobs, policy="slurm", slurm_conf=str(tmp_path))
    found = [reason and f"Slurm never starts it: {reason}" for reason in reasons]
    assert out.table["reason"].to_pylist() == found


@pytest.mark.parametrize("limits", [[1, None, None], [None, None, 1], [0, 1, 2]])
def test_the_limit_of_an_array_may_stand_at_any_of_its_tasks(limits: list[int | None]) -> None:
    jobs = {
        "job_id": ["7_0", "7_1", "7_2"],
        "submit_time": [0] * 3,
        "duration": [10] * 3,
        "estimate": [60] * 3,
        "num_gpus": [1] * 3,
        "array_limit": limits,
    }
    out = wt.simulate(jobs, "4x4", "slurm")
    assert out.table["start_time"].to_pylist() == [1, 12, 23]


#: Four nodes, two in each of two partitions.
TWO_PARTITIONS = (
    "SelectType=select/cons_tres\nSelectTypeParameters=CR_Core\nPriorityType=priority/basic\n"
    "NodeName=g[1-4] CPUs=8 Gres=gpu:A100:4\n"
    "PartitionName=a Nodes=g[1-2] Default=YES\nPartitionName=b Nodes=g[3-4]\n"
)
SLEEPING: dict[str, Any] = {
    "power": {"gpus": {"default": {"idle_w": 0, "active_w": 100}}},
    "node_sleep": "earth,wake_time=10s,buffer=0,step=60s",
}


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_nodes_are_called_of_a_jobs_partitions(tmp_path: Path, engine: Any) -> None:
    (tmp_path / "slurm.conf").write_text(TWO_PARTITIONS)
    jobs = {
        "submit_time": [0, 4000],
        "duration": [9000, 100],
        "num_gpus": [2, 2],
        "partition": ["a", "b"],
    }
    # A node of the other partition is awake and has two GPUs free.
    out = wt.simulate(jobs, policy="slurm", slurm_conf=str(tmp_path), engine=engine, **SLEEPING)
    assert out.table["start_time"].to_pylist() == [1, 4011]
    assert out.table["nodes"].to_pylist() == [[0], [2]]


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_nodes_are_called_of_one_of_a_jobs_partitions(tmp_path: Path, engine: Any) -> None:
    (tmp_path / "slurm.conf").write_text(TWO_PARTITIONS)
    jobs = {
        "submit_time": [0, 4000],
        "duration": [8000, 100],
        "num_gpus": [2, 8],
        "partition": ["a", "a,b"],
    }
    # Node 0 is held. Of the others 2 and 3 are called, both of b: not 1 and 2, one of each.
    given = {"slurm_conf": str(tmp_path), "until": 9000, **SLEEPING}
    out = wt.simulate(jobs, policy="slurm", engine=engine, **given)
    assert out.table["start_time"].to_pylist() == [1, 4011]
    assert out.table["nodes"].to_pylist() == [[0], [2, 3]]
