"""Slurm's lists of hosts: ``n[1-3,7],gpu01`` (scontrol show hostlist)."""

from __future__ import annotations

import re

#: Names that one list may stand for, at most.
MOST_HOSTS = 1_000_000
_ITEM = re.compile(r"([^,\[\]]*)((?:\[[^\[\]]*\][^,\[\]]*)*)(?:,|$)")
_RANGES = re.compile(r"\[([^\[\]]*)\]([^,\[\]]*)")


def hosts(text: str) -> list[str]:
    """Return the names that a list of hosts stands for, in its order.

    Raises:
        ValueError: it is no such list, or stands for more than `MOST_HOSTS` names.

    >>> hosts("n[08-10],login")
    ['n08', 'n09', 'n10', 'login']
    """
    found: list[str] = []
    at = 0
    while at < len(text):
        item = _ITEM.match(text, at)
        if item is None or item.end() == at:
            raise ValueError("a list of hosts such as n[1-3,7]")
        names = [item[1]]
        for ranges, tail in _RANGES.findall(item[2]):
            numbers = _numbers(ranges)
            if len(names) * len(numbers) + len(found) > MOST_HOSTS:
                raise ValueError(f"at most {MOST_HOSTS:,} hosts")
            names = [name + number + tail for name in names for number in numbers]
        found += names
        at = item.end()
    return found


def _numbers(ranges: str) -> list[str]:
    """Return the numbers of ``1-3,07``, with the leading zeros that they have."""
    found: list[str] = []
    for part in ranges.split(","):
        first, _, last = part.partition("-")
        last = last or first
        if not (first.isascii() and first.isdigit() and last.isascii() and last.isdigit()):
            raise ValueError("ranges of numbers such as 1-3,7")
        if len(last) > len(str(MOST_HOSTS)) + len(first) or (
            int(last) - int(first) + len(found) > MOST_HOSTS
        ):
            raise ValueError(f"at most {MOST_HOSTS:,} hosts")
        found += [str(number).zfill(len(first)) for number in range(int(first), int(last) + 1)]
    return found


def readable_hosts(text: str) -> list[str]:
    """Return what `hosts` does, and no name where the list cannot be read."""
    try:
        return hosts(text)
    except ValueError:
        return []
