"""A trace's jobs as Kueue's workloads."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from windtunnel.cluster.topology.node_tree import fewest_pods
from windtunnel.cluster.topology.words import request_of
from windtunnel.errors import PolicyError, quote, unused_names
from windtunnel.policies.kueue import objects

if TYPE_CHECKING:
    from windtunnel.policies.kueue.manifests import Manifests
    from windtunnel.sim.jobs import JobView
    from windtunnel.sim.problem import Problem

_GIB = 2**30


def gpu_resource(manifests: Manifests) -> str:
    """Return the one resource of the quotas that is GPUs.

    Raises:
        PolicyError: there is none, or several.
    """
    named = {
        resource
        for queue in manifests.queues
        for group in queue.resource_groups
        for resource in group.covered
    }
    gpus = sorted(resource for resource in named if "gpu" in resource.lower())
    if len(gpus) != 1:
        found = ", ".join(quote(resource) for resource in (gpus or sorted(named)))
        message = f"which resource are the GPUs? found {found}; say it: gpu=nvidia.com/gpu"
        raise PolicyError("kueue", message)
    return gpus[0]


def queues_by_name(manifests: Manifests) -> dict[str, str]:
    """Return the ClusterQueue of each name that a job's ``vc`` may be: its own, a LocalQueue's."""
    found = {queue.name: queue.name for queue in manifests.queues}
    for local in manifests.local_queues:
        found.setdefault(local.name, local.cluster_queue)
        found[f"{local.namespace}/{local.name}"] = local.cluster_queue
    return found


def idle_queues(manifests: Manifests, problem: Problem) -> list[str]:
    """Return what to note of LocalQueues that no job is sent to: one sentence, or none.

    A job's ``vc`` may be a LocalQueue's name, with or without its namespace, or its ClusterQueue's.
    """
    vcs = {None if vc is None else str(vc) for vc in problem.jobs.vc.tolist()}
    idle = [
        local.name
        for local in manifests.local_queues
        if vcs.isdisjoint((local.name, f"{local.namespace}/{local.name}", local.cluster_queue))
    ]
    return unused_names("The manifests have", "LocalQueue", idle, vcs, where="the trace")


class JobReader:
    """Makes workloads of jobs.

    Args:
        manifests: the manifests.
        problem: the run.
        gpu: the resource that GPUs are.
        topology: what jobs ask of the topology that say nothing themselves; None = nothing.
        levels: the levels that there are.
    """

    def __init__(
        self,
        manifests: Manifests,
        problem: Problem,
        gpu: str,
        topology: str | None,
        levels: tuple[str, ...],
    ) -> None:
        self.gpu = gpu
        self.units = problem.units
        self.levels = levels
        self.most = max((int(size) for size in problem.sizes), default=0)
        self.priorities = manifests.priorities
        self.topology = request_of(topology, levels) if topology else None
        self.columns = set(problem.jobs.table.column_names)
        placed = any(getattr(demand, "topology", None) for demand in problem.demands)
        #: The words are meant for the placement where no flavor has a topology, and it has one.
        self.reads_words = "topology" in self.columns and (bool(levels) or not placed)
        self.queues = queues_by_name(manifests)
        self.doors = {local.name: local.namespace for local in manifests.local_queues}
        own = {queue.name for queue in manifests.queues}
        #: Names of LocalQueues that let nobody in; a bare name is the first one's, as in `queues`.
        self.stopped: set[str] = set()
        named: set[str] = set()
        for local in manifests.local_queues:
            if local.stop_policy != "None":
                self.stopped.add(f"{local.namespace}/{local.name}")
                self.stopped |= {local.name} - own - named
            named.add(local.name)
        #: Jobs of one kind have one pod set: what is found out of it is found once.
        self._pod_sets: dict[tuple[object, ...], objects.PodSet] = {}
        self.covered = {
            queue.name: {r for group in queue.resource_groups for r in group.covered}
            for queue in manifests.queues
        }

    def queue_of(self, job: JobView) -> str:
        """Return the cluster queue of a job.

        Raises:
            PolicyError: it names none.
        """
        queue = self.queues.get(job.vc or "")
        if queue is None:
            names = ", ".join(quote(name) for name in list(self.queues)[:10])
            message = f"its vc {quote(job.vc)} is no LocalQueue or ClusterQueue; there are: {names}"
            raise PolicyError("kueue", message, job=job.job_id)
        return queue

    def workload(self, job: JobView) -> objects.Workload:
        """Return a job as a workload: pods of one size, each within a node.

        Raises:
            PolicyError: its queue or its priority is not known.
        """
        covered = self.covered[self.queue_of(job)]
        units = round(job.num_gpus * self.units)
        pods = self._pods(job, units)
        requests = {self.gpu: units // pods} if units else {}
        if "cpu" in covered and not math.isnan(job.num_cpus):
            requests["cpu"] = math.ceil(job.num_cpus * 1000 / pods)
        if "memory" in covered and not math.isnan(job.mem_gib):
            requests["memory"] = math.ceil(job.mem_gib * _GIB / pods)
        words = str(job.topology or "") if self.reads_words else ""
        kind = (pods, *requests.items(), words)
        pod_set = self._pod_sets.get(kind)
        if pod_set is None:
            asked = request_of(words, self.levels) if words else self.topology
            pod_set = objects.PodSet("main", pods, requests, topology=asked)
            self._pod_sets[kind] = pod_set
        name = job.vc or ""
        namespace, _, door = name.rpartition("/")
        return objects.Workload(
            name=job.job_id,
            pod_sets=(pod_set,),
            namespace=namespace or self.doors.get(door, "default"),
            uid=f"{job.number:012d}",
            queue=door,
            priority=self._priority(job),
            created=job.submit_time,
        )

    def _pods(self, job: JobView, units: int) -> int:
        """Return how many pods of one size a job is: its tasks, else as few as nodes allow."""
        tasks = job.num_tasks
        if not math.isnan(tasks) and tasks >= 1 and units % int(tasks) == 0:
            return int(tasks)
        return fewest_pods(units, self.most)

    def _priority(self, job: JobView) -> int:
        """Return a job's priority: a number, or the value of its class."""
        if "priority_class" in self.columns and job.priority_class:
            name = str(job.priority_class)
            if name not in self.priorities:
                message = f"its priority class {quote(name)} is no WorkloadPriorityClass"
                raise PolicyError("kueue", message, job=job.job_id)
            return self.priorities[name]
        return 0 if math.isnan(job.priority) else int(job.priority)
