"""What a pod asks for: Kubernetes quantities, and the rule that adds up its containers.

Quantities: kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity. The rule for
init containers, sidecars and overhead: kubernetes.io/docs/concepts/workloads/pods/init-containers
and .../sidecar-containers (resource sharing within containers).
"""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Annotated

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

#: A whole number from 0 on, as Kubernetes has them (int32).
Count = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
#: A priority as Kubernetes has it, 32 bits.
Priority = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]

_QUANTITY = re.compile(
    r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))(?:[eE]([+-]?[0-9]{1,3})|([numkMGTPE]|[KMGTPE]i)?)",
    re.ASCII,
)
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
#: No cluster has more of anything, counted in bytes or in thousandths of a core.
_MAX = Decimal(10) ** 24
_MAX_DIGITS = 64
_GIB = Decimal(2**30)
_MIG = re.compile(r"[^/]+/mig-.+")
#: Labels of nodes that name the GPU's type, as a pod's node selector may ask for it.
_TYPE_LABELS = (
    "nvidia.com/gpu.product",
    "amd.com/gpu.product-name",
    "cloud.google.com/gke-accelerator",
)


def exact(text: str | float) -> Decimal:
    """Return a Kubernetes quantity, of either sign and any size, as an exact number.

    Raises:
        ValueError: it is none.

    >>> [float(exact(text)) for text in ("500m", "1.5Ki", "2e3", -8)]
    [0.5, 1536.0, 2000.0, -8.0]
    """
    words = str(text)
    found = _QUANTITY.fullmatch(words)
    if found is None or len(words) > _MAX_DIGITS:
        raise ValueError(words)
    number, exponent, suffix = found.groups()
    try:
        if suffix in _BINARY:
            return Decimal(number) * Decimal(1024) ** _BINARY[suffix]
        power = int(exponent) if exponent is not None else _DECIMAL[suffix or ""]
        return Decimal(f"{number}E{power}")
    except InvalidOperation as error:
        raise ValueError(words) from error


def quantity(text: str | float) -> Decimal:
    """Return a Kubernetes quantity as an exact number.

    Raises:
        ValueError: it is none, negative, or larger than any cluster.
    """
    value = exact(text)
    if not 0 <= value <= _MAX:
        raise ValueError(str(text))
    return value


def quantities(given: Mapping[str, str | float]) -> dict[str, Decimal]:
    """Return amounts by resource as exact numbers.

    Raises:
        ValueError: a quantity is none.
    """
    return {name: quantity(text) for name, text in given.items()}


class Resources(msgspec.Struct):
    """The ``resources`` of a container or pod."""

    requests: dict[str, str | int | float] | None = None
    limits: dict[str, str | int | float] | None = None

    def asked(self) -> dict[str, Decimal]:
        """Return what is requested; where only a limit is given, that is the request.

        Raises:
            ValueError: a quantity is none.
        """
        return quantities({**(self.limits or {}), **(self.requests or {})})


class Container(msgspec.Struct, rename="camel"):
    """A container of a pod; one of ``initContainers`` that always restarts is a sidecar."""

    resources: Resources | None = None
    restart_policy: str | None = None

    def asked(self) -> dict[str, Decimal]:
        """Return what it requests."""
        return {} if self.resources is None else self.resources.asked()


class PodSpec(msgspec.Struct, rename="camel"):
    """What windtunnel reads of a pod's specification."""

    containers: list[Container] | None = None
    init_containers: list[Container] | None = None
    resources: Resources | None = None
    overhead: dict[str, str | int | float] | None = None
    node_selector: dict[str, str] | None = None
    node_name: str | None = None
    priority: Priority | None = None
    active_deadline_seconds: Count | None = None

    def asked(self) -> dict[str, Decimal]:
        """Return what the pod holds while it runs, resource by resource.

        The larger of all containers with all sidecars together, and of each init container with
        the sidecars started before it; what the pod as a whole requests replaces that; the
        overhead comes on top.

        Raises:
            ValueError: a quantity is none.
        """
        together: dict[str, Decimal] = {}
        sidecars: dict[str, Decimal] = {}
        first: dict[str, Decimal] = {}
        for container in self.init_containers or ():
            asked = container.asked()
            if container.restart_policy == "Always":
                _add(sidecars, asked)
                asked = {}
            _raise_to(first, _sum(sidecars, asked))
        for container in self.containers or ():
            _add(together, container.asked())
        _add(together, sidecars)
        _raise_to(together, first)
        if self.resources is not None:
            together.update(self.resources.asked())
        _add(together, quantities(self.overhead or {}))
        return together

    def gpu_types(self, asked: dict[str, Decimal]) -> dict[str, str]:
        """Return the GPU type that the node selector asks for; "" = none.

        Returns:
            Resource -> type, of the resources that are GPUs or slices of GPUs.
        """
        wanted = self.node_selector or {}
        selected = next((wanted[label] for label in _TYPE_LABELS if wanted.get(label)), "")
        return dict.fromkeys((name for name in asked if is_gpu(name) or is_mig(name)), selected)


class Template(msgspec.Struct):
    """The pods of a job."""

    spec: PodSpec


def _sum(one: dict[str, Decimal], other: dict[str, Decimal]) -> dict[str, Decimal]:
    both = dict(one)
    _add(both, other)
    return both


def _add(total: dict[str, Decimal], more: dict[str, Decimal]) -> None:
    for name, value in more.items():
        total[name] = total.get(name, Decimal(0)) + value


def _raise_to(total: dict[str, Decimal], least: dict[str, Decimal]) -> None:
    for name, value in least.items():
        total[name] = max(total.get(name, Decimal(0)), value)


def is_gpu(resource: str) -> bool:
    """Return whether a resource is whole GPUs: ``nvidia.com/gpu``, ``amd.com/gpu``, ``*/gpu``."""
    return resource.endswith("/gpu")


def is_mig(resource: str) -> bool:
    """Return whether a resource is slices of GPUs: ``nvidia.com/mig-1g.10gb``."""
    return _MIG.fullmatch(resource) is not None


class Gang:
    """What the pods of a job ask for together.

    Attributes:
        pods: how many pods.
        gpu_pods: how many of them ask for GPUs or slices of GPUs.
        gpus: whole GPUs.
        mig: slices of GPUs.
        types: GPU types, in the order in which they were named.
        others: resources with "gpu" in their name that are no whole GPUs and no slices.
    """

    def __init__(self) -> None:
        self.pods = 0
        self.gpu_pods = 0
        self.types: dict[str, None] = {}
        self.others: set[str] = set()
        self._asked: dict[str, Decimal] = {}

    def add(self, count: int, asked: dict[str, Decimal], types: dict[str, str]) -> None:
        """Add ``count`` pods that each ask for ``asked``.

        Args:
            asked: resource -> amount a pod.
            types: GPU resource -> type.
        """
        self.pods += count
        held = [name for name, each in asked.items() if each and (is_gpu(name) or is_mig(name))]
        if held:
            self.gpu_pods += count
        self.types |= {types[name]: None for name in held if types.get(name)}
        self.others |= {n for n in asked if "gpu" in n and not (is_gpu(n) or is_mig(n))}
        _add(self._asked, {name: each * count for name, each in asked.items()})

    @property
    def gpus(self) -> float:
        """Whole GPUs."""
        return float(sum(each for name, each in self._asked.items() if is_gpu(name)))

    @property
    def mig(self) -> float:
        """Slices of GPUs."""
        return float(sum(each for name, each in self._asked.items() if is_mig(name)))

    @property
    def cpus(self) -> float | None:
        """CPU cores; None where nothing was asked for."""
        return float(self._asked["cpu"]) if "cpu" in self._asked else None

    @property
    def mem_gib(self) -> float | None:
        """Host memory in GiB; None where nothing was asked for."""
        return float(self._asked["memory"] / _GIB) if "memory" in self._asked else None

    @property
    def tasks(self) -> int | None:
        """Size of the gang: the pods that ask for GPUs, all pods where none does; None = no pods.

        Pods without a GPU beside pods with some (a launcher) hold no GPU, and `num_gpus` over
        `num_tasks` must stay what one task asks for.
        """
        return self.gpu_pods or self.pods or None

    @property
    def gpu_type(self) -> str | None:
        """The types joined by ``|``, None where none is named."""
        return "|".join(self.types) or None
