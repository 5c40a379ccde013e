"""Slurm's files: what they say, line by line."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from windtunnel.errors import TraceError
from windtunnel.site.host_list import hosts
from windtunnel.site.sacctmgr import read_sacctmgr
from windtunnel.site.slurm_conf import gpu_counts, read_slurm_conf
from windtunnel.site.slurm_words import duration, tres

if TYPE_CHECKING:
    from pathlib import Path

CONF = """
# a comment
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=60,bf_window=120,pack_serial_at_end
SelectTypeParameters=CR_Core_Memory,CR_LLN
PriorityType=priority/multifactor
PriorityDecayHalfLife=1-0
OverTimeLimit=2
NodeName=DEFAULT RealMemory=1000
NodeName=n[1-2] Sockets=2 CoresPerSocket=8 ThreadsPerCore=2 Gres=gpu:A100:4 Weight=5 \\
  Features=big,new
NodeName=n3 CPUs=4 Gres=gpu:2
PartitionName=DEFAULT MaxTime=1-00:00:00
PartitionName=a Nodes=n[1,3] Default=YES PriorityTier=3
PartitionName=b Nodes=ALL MaxTime=30 OverSubscribe=EXCLUSIVE State=DOWN
"""


def write(folder: Path, name: str, text: str) -> Path:
    file = folder / name
    file.write_text(text)
    return file


def test_the_configuration_is_read(tmp_path: Path) -> None:
    write(tmp_path, "slurm.conf", CONF)
    write(tmp_path, "gres.conf", "NodeName=n3 Name=gpu Type=V100 File=/dev/nvidia[0-1]\n")
    site = read_slurm_conf(tmp_path)
    assert [(n.name, n.cpus, n.memory, n.weight) for n in site.nodes] == [
        ("n1", 32, 1000, 5),
        ("n2", 32, 1000, 5),
        ("n3", 4, 1000, 1),
    ]
    assert [n.gpus for n in site.nodes] == [{"a100": 4}, {"a100": 4}, {"v100": 2}]
    assert site.nodes[0].features == {"big", "new"}
    first, second = site.partitions
    assert (first.nodes, first.max_time, first.tier) == (("n1", "n3"), 86400, 3)
    assert (second.nodes, second.max_time, second.exclusive) == (("n1", "n2", "n3"), 1800, True)
    assert (first.is_up, second.is_up) == (True, False)
    assert site.settings.scheduler["bf_window"] == "120"
    assert site.settings.over_time_limit == 120
    assert site.settings.priority.half_life == 86400


def test_what_is_not_understood_is_named_with_its_key(tmp_path: Path) -> None:
    write(tmp_path, "slurm.conf", "NodeName=n1 CPUs=many\n")
    with pytest.raises(TraceError, match=r"slurm.conf.*'CPUs'.*'many'"):
        read_slurm_conf(tmp_path)
    with pytest.raises(TraceError, match="a readable file"):
        read_slurm_conf(tmp_path / "nowhere")


def test_commands_tables_and_dumps_tell_the_same(tmp_path: Path) -> None:
    commands = write(
        tmp_path,
        "commands",
        "add account a1 Parent=root Fairshare=40\n"
        "add user u1 Account=a1 Fairshare=2\n"
        "modify account where name=a1 set GrpTRES=cpu=64\n"
        "modify user where name=u1 set MaxJobs=2\n"
        "add qos high Priority=100 MaxTRESPU=cpu=32 Preempt=low\n",
    )
    dumped = write(
        tmp_path,
        "dump",
        "Cluster - 'wt':Fairshare=1\n"
        "Parent - 'root'\n"
        "User - 'root':DefaultAccount='root':AdminLevel='Administrator':Fairshare=1\n"
        "Account - 'a1':Description='a1':Fairshare=40:GrpTRES=cpu=64\n"
        "Parent - 'a1'\n"
        "User - 'u1':DefaultAccount='a1':Fairshare=2:MaxJobs=2\n",
    )
    table = write(
        tmp_path,
        "table",
        "Cluster|Account|User|Share|GrpTRES|MaxJobs\n"
        "wt|root|||||\nwt|root|root|1||\nwt|a1||40|cpu=64|\nwt|a1|u1|2||2\n",
    )
    qos, first = read_sacctmgr(commands)
    assert (qos[0].priority, qos[0].bounds.user, qos[0].preempts) == (100, {"cpu": 32}, {"low"})
    assert read_sacctmgr(dumped)[1] == first
    assert read_sacctmgr(table)[1] == first
    assert first[-1].bounds.jobs == 2
    assert first[-2].bounds.group == {"cpu": 64}


def test_words_of_slurm() -> None:
    assert hosts("n[08-10,12]x,login") == ["n08x", "n09x", "n10x", "n12x", "login"]
    assert [duration(t) for t in ("90", "1:30", "1:00:00", "2-12", "UNLIMITED")] == [
        5400,
        90,
        3600,
        216000,
        None,
    ]
    assert tres("cpu=4,mem=1.5G,gres/gpu:a100=2") == {"cpu": 4, "mem": 1536, "gpu:a100": 2}
    assert gpu_counts("gpu:A100:4(S:0-1),nvme:1,gpu:2") == {"a100": 4, "": 2}


@pytest.mark.parametrize("text", ["n[1-", "n[a-b]", "n[1-99999999999]", "n[1-3"])
def test_no_list_of_hosts(text: str) -> None:
    with pytest.raises(ValueError, match=r"hosts|ranges"):
        hosts(text)


@pytest.mark.parametrize("text", ["-5", "1:x", "1-x", "5-", "soon"])
def test_no_time(tmp_path: Path, text: str) -> None:
    write(tmp_path, "slurm.conf", f"NodeName=n1\nPartitionName=a Nodes=n1 MaxTime={text}\n")
    with pytest.raises(TraceError, match="expected a time such as"):
        read_slurm_conf(tmp_path)


@pytest.mark.parametrize(
    "commands",
    [
        "add account a parent=a\n",
        "add account a parent=b\nadd account b parent=c\nadd account c parent=b\n",
    ],
)
def test_accounts_in_a_circle_are_refused(tmp_path: Path, commands: str) -> None:
    with pytest.raises(TraceError, match="accounts without a circle"):
        read_sacctmgr(write(tmp_path, "commands", commands))


@pytest.mark.parametrize(
    ("switches", "message"),
    [
        ("SwitchName=a Switches=b\nSwitchName=b Switches=a\n", "without a circle; 'a'"),
        ("SwitchName=a Switches=b\n", "a line of switch 'b'"),
    ],
)
def test_wrong_switches_are_refused(tmp_path: Path, switches: str, message: str) -> None:
    write(tmp_path, "slurm.conf", CONF + "TopologyPlugin=topology/tree\n")
    write(tmp_path, "topology.conf", switches)
    with pytest.raises(TraceError, match=message):
        read_slurm_conf(tmp_path)


def test_what_may_never_end_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "accounts")
    with pytest.raises(TraceError, match="a readable file"):
        read_sacctmgr(tmp_path / "accounts")
    (tmp_path / "slurm.conf").symlink_to("/dev/zero")
    with pytest.raises(TraceError, match="a readable file"):
        read_slurm_conf(tmp_path)


def test_sets_of_nodes_and_nodes_that_are_not_there(tmp_path: Path) -> None:
    sets = "NodeSet=fast Feature=big\nNodeSet=rest Nodes=n3\nPartitionName=c Nodes=fast\n"
    write(tmp_path, "slurm.conf", CONF + sets + "PartitionName=d Nodes=rest,n1\n")
    found = {part.name: part.nodes for part in read_slurm_conf(tmp_path).partitions}
    assert (found["c"], found["d"]) == (("n1", "n2"), ("n1", "n3"))
    write(tmp_path, "slurm.conf", CONF + "PartitionName=c Nodes=n[2-4]\n")
    with pytest.raises(TraceError, match=r"'Nodes': found 'n4'; expected names of NodeName"):
        read_slurm_conf(tmp_path)


def test_files_that_include_themselves_end(tmp_path: Path) -> None:
    write(tmp_path, "slurm.conf", CONF + "include slurm.conf\n" * 20)
    with pytest.raises(TraceError, match="at most 1,000 Include lines"):
        read_slurm_conf(tmp_path)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("NodeName=n1 CPUs=-4", "column 'CPUs': found '-4'; expected a whole number of 0 or more"),
        ("NodeName=n1 Gres=gpu:a100:-4", "'gpu:a100:-4'; expected a whole number of 0 or more"),
        ("NodeName=n[1-2]\nNodeName=n2 CPUs=9", "found 'n2'; expected each node on one line"),
        ("PriorityWeightTRES=cpu=nan", "found 'cpu=nan'; expected a number of 0 or more"),
        ("PriorityWeightTRES=cpu=1e400", "expected a number of 0 or more"),
    ],
)
def test_numbers_that_slurm_has_none_of(tmp_path: Path, line: str, message: str) -> None:
    write(tmp_path, "slurm.conf", f"{line}\nPartitionName=a Nodes=ALL\n")
    with pytest.raises(TraceError, match=message):
        read_slurm_conf(tmp_path)


def test_a_limit_below_nothing(tmp_path: Path) -> None:
    file = write(tmp_path, "accounts", "add qos long GrpTRES=gres/gpu=-5\n")
    with pytest.raises(TraceError, match="found 'gres/gpu=-5'; expected a limit"):
        read_sacctmgr(file)
    assert gpu_counts("gpu:3090:2,gpu:a100:no_consume:1") == {"3090": 2, "a100": 1}


@pytest.mark.parametrize("text", ["n[1-9][1-9999][1-9999]", f"n[{'1-999999,' * 20}1]"])
def test_a_list_of_too_many_hosts_is_refused_before_it_is_made(text: str) -> None:
    with pytest.raises(ValueError, match="at most 1,000,000 hosts"):
        hosts(text)
