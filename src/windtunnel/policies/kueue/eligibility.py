"""Whether a pod set may use a flavor, or a node: taints, labels, affinity."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from collections.abc import Set as AbstractSet

    from windtunnel.policies.kueue.objects import PodSet, Taint, Toleration

#: The effects that keep pods off.
KEEPS_OFF = ("NoSchedule", "NoExecute")


def tolerated(taints: Iterable[Taint], tolerations: Iterable[Toleration]) -> bool:
    """Return whether all taints that keep pods off are tolerated."""
    tolerations = tuple(tolerations)
    return all(
        any(toleration.tolerates(taint) for toleration in tolerations)
        for taint in taints
        if taint.effect in KEEPS_OFF
    )


def selected(
    pod_set: PodSet, labels: Mapping[str, str], known: AbstractSet[str] | None = None
) -> bool:
    """Return whether a pod set's selector and required affinity match labels.

    Args:
        pod_set: the pod set.
        labels: the labels of a flavor or a node.
        known: only these keys count; None = all.
    """
    for key, value in pod_set.node_selector.items():
        if (known is None or key in known) and labels.get(key) != value:
            return False
    required = pod_set.node_affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if not required:
        return True
    for term in required.get("nodeSelectorTerms", []):
        expressions = [
            expression
            for expression in term.get("matchExpressions", [])
            if known is None or expression["key"] in known
        ]
        if not expressions and known is not None:
            return True
        if expressions and all(_matches(expression, labels) for expression in expressions):
            return True
    return False


def _matches(expression: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Return whether labels match one expression of a selector."""
    value, values = labels.get(expression["key"]), expression.get("values", [])
    operator = expression.get("operator", "In")
    if operator == "Exists":
        return value is not None
    if operator == "DoesNotExist":
        return value is None
    if operator == "NotIn":
        return value not in values
    if operator in ("Gt", "Lt"):
        try:
            ours, theirs = int(value or ""), int(values[0])
        except ValueError:
            return False
        return ours > theirs if operator == "Gt" else ours < theirs
    return value in values
