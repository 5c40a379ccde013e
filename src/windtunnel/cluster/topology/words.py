"""What is asked of a topology, in words: ``required:rack``, ``unconstrained``, ``slice=rack/8``."""

from __future__ import annotations

from windtunnel.cluster.topology.request import Layer, TopologyRequest
from windtunnel.errors import SpecError, quote

_HOSTS = ("host", "node")
_APART = "/apart"


def request_of(words: str, levels: tuple[str, ...]) -> TopologyRequest:
    """Return a request.

    Args:
        words: joined by ``+``: ``required:LEVEL``, ``preferred:LEVEL`` or ``unconstrained``, and
            ``slice=LEVEL/PODS``, from the top if there are several; ``slice=LEVEL/PODS/apart``
            has no two slices in one domain.
        levels: the levels' names; a level may be called by the last part of its name, the lowest
            ``host``.

    Raises:
        SpecError: a word or a level is not known.

    >>> request_of(
    ...     "required:block+slice=rack/8", ("example.com/block", "example.com/rack")
    ... ).required
    'example.com/block'
    """
    found = {"required": "", "preferred": ""}
    unconstrained = False
    layers: list[Layer] = []
    for word in words.split("+"):
        name, _, rest = word.strip().partition(":")
        if name == "unconstrained" and not rest:
            unconstrained = True
        elif name in found and rest:
            found[name] = _level(rest, levels)
        elif name.startswith("slice="):
            given = name.removeprefix("slice=")
            level, _, size = given.removesuffix(_APART).rpartition("/")
            apart = given.endswith(_APART)
            if not level or not size.isdecimal() or not int(size) or (apart and layers):
                message = "expected slice=LEVEL/PODS; the first may end in /apart."
                raise SpecError("topology", f"found {quote(word)}; {message}")
            layers.append(Layer(_level(level, levels), int(size), apart))
        else:
            raise SpecError(
                "topology",
                f"found {quote(word)}; expected required:LEVEL, preferred:LEVEL, unconstrained or "
                "slice=LEVEL/PODS, joined by +.",
            )
    if sum((bool(found["required"]), bool(found["preferred"]), unconstrained)) > 1:
        raise SpecError("topology", f"found {quote(words)}; expected one of the three words.")
    return TopologyRequest(
        required=found["required"],
        preferred=found["preferred"],
        unconstrained=unconstrained,
        layers=tuple(layers),
    )


def _level(name: str, levels: tuple[str, ...]) -> str:
    """Return a level's full name."""
    named = {level.rpartition("/")[2]: level for level in levels}
    if levels:
        named |= dict.fromkeys(_HOSTS, levels[-1])
    if name in levels:
        return name
    if name not in named:
        raise SpecError.unknown("topology level", name, {*levels, *named})
    return named[name]
