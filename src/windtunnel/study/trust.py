"""Whether a file names code: what it names is looked up as its runs will look it up.

`windtunnel.plugins.imported` is the gate; here it is found shut before anything is flown, whatever
the braces of a text are filled with.
"""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING, Any

from windtunnel.cluster.parse import parse_cluster
from windtunnel.errors import WindtunnelError
from windtunnel.placements import split_placement
from windtunnel.plugins import UntrustedNameError, names_of_file
from windtunnel.policies import resolve_policy
from windtunnel.predictors import resolve_predictor
from windtunnel.sim.own_metrics import METRICS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

_BRACES = re.compile(r"\{(\w+)\}")


def refuse_code(
    words: Iterable[tuple[str, str]], values: Mapping[str, Sequence[Any]], source: str
) -> None:
    """Refuse a file that names code to run.

    Args:
        words: (key of the file, or ``policy``; text) pairs: what the file names.
        values: parameter -> what it may be: what braces in the texts stand for; other braces stand
            for themselves.
        source: the file.

    Raises:
        UntrustedNameError: a text, however its braces are filled, is ``package.module:name``.
    """
    with names_of_file(source, trust=False):
        for key, text in words:
            if key not in _LOOK_UP:
                continue
            for filled in _filled(text, values):
                try:
                    _LOOK_UP[key](filled)
                except UntrustedNameError:
                    raise
                except WindtunnelError:
                    continue  # raised with its place when the grid is made


def _filled(text: str, values: Mapping[str, Sequence[Any]]) -> Iterator[str]:
    """Yield a text with its braces filled in every way; all numbers are as good as one."""
    names = [name for name in dict.fromkeys(_BRACES.findall(text)) if name in values]
    choices = [_distinct(values[name]) for name in names]
    for chosen in itertools.product(*choices):
        by_name = dict(zip(names, chosen, strict=True))
        yield _BRACES.sub(lambda match, by_name=by_name: by_name.get(match[1], match[0]), text)  # type: ignore[misc] # bound now


def _distinct(values: Sequence[Any]) -> list[str]:
    texts = [value if isinstance(value, str) else "1" for value in values]
    return list(dict.fromkeys(texts))


def _policy(text: str) -> None:
    policy = resolve_policy(text)
    for name in (*policy.by, policy.estimates):
        if ":" in name:
            resolve_predictor(name)


_LOOK_UP: dict[str, Callable[[str], Any]] = {
    "policy": _policy,
    "placement": split_placement,
    "cluster": parse_cluster,
    "estimates": resolve_predictor,
    "metrics": METRICS.resolve,
}
