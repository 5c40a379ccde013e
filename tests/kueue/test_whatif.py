"""``windtunnel whatif --kueue``: two configurations over a log, and one more job on a snapshot."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from windtunnel.cli.root import windtunnel

if TYPE_CHECKING:
    from pathlib import Path

GPU = "nvidia.com/gpu"
EVIL = "<script>\u202eq</script>"


def manifests(folder: Path, quota: int) -> str:
    """Write two queues of one cohort that reclaim from each other."""
    folder.mkdir()
    objects: list[dict[str, Any]] = [
        {"kind": "ResourceFlavor", "metadata": {"name": "h100"}, "spec": {}}
    ]
    for name in ("one", "two"):
        quotas = [{"name": GPU, "nominalQuota": quota}]
        spec = {
            "cohortName": "all",
            "preemption": {"reclaimWithinCohort": "Any"},
            "resourceGroups": [
                {
                    "coveredResources": [GPU],
                    "flavors": [{"name": "h100", "resources": quotas}],
                }
            ],
        }
        objects.append({"kind": "ClusterQueue", "metadata": {"name": name}, "spec": spec})
    listed = {"apiVersion": "v1", "kind": "List", "items": objects}
    (folder / "kueue.json").write_text(json.dumps(listed))
    return str(folder)


def run(*words: str) -> Any:
    result = CliRunner().invoke(windtunnel, [*words, "--json"])
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def refused(*words: str) -> str:
    result = CliRunner().invoke(windtunnel, list(words))
    assert result.exit_code == 2
    assert result.stderr.count("Error") == 1
    return result.stderr


@pytest.fixture
def log(tmp_path: Path) -> str:
    """Three weeks; in each a job of 2 GPUs in queue one, and one of 2 in queue two at once."""
    week = 7 * 86400
    lines = ["job_id,submit_time,duration,num_gpus,vc"]
    for k in range(3):
        lines += [f"a{k},{k * week},3600,2,one", f"b{k},{k * week},3600,2,two"]
    path = tmp_path / "log.csv"
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def test_two_configurations_by_queue(tmp_path: Path, log: str) -> None:
    """With quotas of 1 each, the one borrows the other's; the other waits its hour."""
    folders = [manifests(tmp_path / name, quota) for name, quota in (("now", 2), ("then", 1))]
    found = run("whatif", log, "--kueue", folders[0], "--kueue", folders[1], "--cluster", "1x4")
    one, two = found["by_cluster_queue"]
    assert (one["queue"], two["queue"]) == ("one", "two")
    assert (one["before_avg_wait"], two["before_avg_wait"]) == (0, 0)
    waits = sorted((one["after_avg_wait"], two["after_avg_wait"]))
    assert waits == [0, 3600]
    for row in (one, two):
        assert (row["before_jobs"], row["before_admitted"], row["after_admitted"]) == (3, 3, 3)
        assert row["low_wait"] == row["high_wait"] == row["after_avg_wait"]
        assert row["after_preemptions"] == 0
    span = 2 * 7 * 86400 + 3600
    assert one["before_use"] == pytest.approx(3 * 2 * 3600 / span / 2)
    assert found["changes"] == [f"the manifests {folders[1]}"]


def test_manifests_as_they_are_and_more_nodes(tmp_path: Path, log: str) -> None:
    folder = manifests(tmp_path / "now", 2)
    found = run("whatif", log, "--kueue", folder, "--nodes", "+1", "--cluster", "1x2")
    assert [row["before_quota"] for row in found["by_cluster_queue"]] == [2, 2]
    rows = {row["measure"]: row for row in found["measures"]}
    assert (rows["avg_wait"]["before"], rows["avg_wait"]["after"]) == (1800, 0)


def test_one_job(tmp_path: Path) -> None:
    folder = manifests(tmp_path / "now", 4)
    pods = {"spec": {"containers": [{"resources": {"limits": {GPU: 6}}}]}}
    job = {
        "kind": "Job",
        "metadata": {"name": EVIL, "labels": {"kueue.x-k8s.io/queue-name": "one"}},
        "spec": {"template": pods},
    }
    (tmp_path / "job.json").write_text(json.dumps(job))
    (tmp_path / "now.json").write_text(json.dumps({"kind": "List", "items": []}))
    words = (*("whatif", "--kueue", folder, "--snapshot", str(tmp_path / "now.json")),
             *("--job", str(tmp_path / "job.json")))  # fmt: skip
    found = run(*words)
    assert found["admitted"]
    assert found["pod_sets"] == [
        {"name": "main", "pods": 1, "flavors": {GPU: "h100"}, "domains": []}
    ]
    row = {"flavor": "h100", "resource": GPU, "now": 4, "least": 2, "unharmed": 2}
    assert found["least_quotas"] == [row], "4 are borrowed"
    page = tmp_path / "one.html"
    printed = CliRunner().invoke(windtunnel, [*words, "--out", str(page)]).stdout
    assert "\u202e" not in printed
    assert "<script>\u202e" not in page.read_text()


def test_what_is_refused(tmp_path: Path, log: str) -> None:
    folder = manifests(tmp_path / "now", 4)
    both = ("--snapshot", log, "--job", log)
    assert "expected a trace" in refused("whatif")
    assert "--job: is missing" in refused("whatif", "--kueue", folder, "--snapshot", log)
    assert "leave out the trace" in refused("whatif", log, "--kueue", folder, *both)
    assert "needs one --kueue" in refused("whatif", *both)
    assert "found 3" in refused("whatif", log, *("--kueue", folder) * 3)
    more = ("--kueue", folder, "--kueue", folder, "--to-policy", "sjf")
    assert "leave out --to-policy" in refused("whatif", log, *more)
    assert "name 'kueue'" in refused("whatif", log, "--policy", "sjf", "--kueue", folder)
    assert "what is to change" in refused("whatif", log, "--kueue", folder)


def test_jobs_that_only_one_configuration_admits_are_noted(tmp_path: Path) -> None:
    folders = [manifests(tmp_path / name, quota) for name, quota in (("now", 2), ("then", 1))]
    path = tmp_path / "log.csv"
    path.write_text("job_id,submit_time,duration,num_gpus,vc\na,0,60,2,one\nb,0,60,4,two\n")
    words = ("whatif", str(path), "--cluster", "1x4", "--kueue")
    printed = CliRunner().invoke(windtunnel, [*words, folders[0], "--kueue", folders[1]]).stdout
    assert "1 job would end only as it is; they are in no number here." in printed
    printed = CliRunner().invoke(windtunnel, [*words, folders[1], "--kueue", folders[0]]).stdout
    assert "1 job would end only as it might be; they are in no number here." in printed


def test_what_is_about_a_log_is_no_question_about_one_job(tmp_path: Path) -> None:
    folder = manifests(tmp_path / "now", 4)
    job = {
        "kind": "Job",
        "metadata": {"name": "new", "labels": {"kueue.x-k8s.io/queue-name": "one"}},
        "spec": {"template": {"spec": {"containers": [{}]}}},
    }
    (tmp_path / "job.json").write_text(json.dumps(job))
    (tmp_path / "now.json").write_text(json.dumps({"kind": "List", "items": []}))
    words = ("whatif", "--kueue", folder, "--job", str(tmp_path / "job.json"), "--snapshot")
    now = str(tmp_path / "now.json")
    assert "--nodes: is about a log" in refused(*words, now, "--nodes", "+4")
    assert "--keep-p90-wait: is about a log" in refused(*words, now, "--keep-p90-wait", "1h")
    assert "found no Workload but 1 'Job'" in refused(*words, str(tmp_path / "job.json"))
    printed = CliRunner().invoke(windtunnel, [*words, now]).stdout
    assert "new is admitted by one, asking for nothing that it owns; nobody" in printed
    assert "The snapshot holds no Workload: the cluster is taken to be empty." in printed


def test_manifests_that_never_end_are_not_read(tmp_path: Path) -> None:
    folder = tmp_path / "now"
    manifests(folder, 4)
    (folder / "z.yaml").symlink_to("/dev/zero")
    words = ("whatif", "--snapshot", "s.yaml", "--job", "j.yaml", "--kueue", str(folder))
    assert "is larger; expected at most 32 MiB" in refused(*words)
    (folder / "z.yaml").unlink()
    os.mkfifo(folder / "z.yaml")
    assert "is a pipe" in refused(*words)
