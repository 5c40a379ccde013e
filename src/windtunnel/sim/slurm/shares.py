"""Fair shares: usage of associations, how it decays, and the factor that comes of it.

Both ways of slurmctld: the fair tree (its default) and the classic factor (``NO_FAIR_TREE``);
https://slurm.schedmd.com/fair_tree.html, https://slurm.schedmd.com/classic_fair_share.html.
"""

from __future__ import annotations

import math
from itertools import groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from windtunnel.site.slurm import SlurmAssociation, SlurmPriority

#: slurmctld's own ln 2.
LN2 = 0.693
#: Fair share of an association whose shares are its parent's.
_USE_PARENT = -1


class Association:
    """An association in the tree of shares.

    Attributes:
        usage: processor-seconds, decayed; those below it included.
        factor: its fair share, 0 to 1; of users.
        effective: its effective usage, 0 to 1, of the classic factor.
    """

    def __init__(self, stated: SlurmAssociation, parent: Association | None) -> None:
        self.name = stated.account, stated.user
        self.is_user = bool(stated.user)
        self.shares = stated.shares
        self.parent = parent
        self.children: list[Association] = []
        self.usage = 0.0
        self.factor = 1.0
        self.effective = 0.0
        self.is_stale = True
        if parent is not None:
            parent.children.append(self)

    def part_of_shares(self) -> float:
        """Return its part of its siblings' shares."""
        if self.parent is None:
            return 1.0
        shares = [child.shares for child in self.parent.children if child.shares != _USE_PARENT]
        return self.shares / sum(shares) if self.shares > 0 else 0.0

    def level(self) -> float:
        """Return shares by usage among its siblings; inf where it has used nothing."""
        above = self.parent.usage if self.parent is not None else 0.0
        used = self.usage / above if above > 0 else 0.0
        return self.part_of_shares() / used if used > 0 else math.inf


class Shares:
    """The tree of shares of a site, and what was used.

    Usage decays at each calculation; what a job ran since the last one (or since it began) is
    added then, or at its end, decayed over as many seconds as it is long.

    Of ``associations`` accounts come before what is in them.
    """

    def __init__(self, associations: Iterable[SlurmAssociation], priority: SlurmPriority) -> None:
        self.priority = priority
        self.decay = 1 - LN2 / priority.half_life if priority.half_life else 1.0
        self.by_name: dict[tuple[str, str], Association] = {}
        for stated in associations:
            above = (stated.account, "") if stated.user else (stated.parent, "")
            parent = self.by_name.get(above)
            self.by_name[stated.account, stated.user] = Association(stated, parent)
        self.root = self.by_name.get(("root", ""))
        self.is_classic = "NO_FAIR_TREE" in priority.flags
        self.users = [one for one in self.by_name.values() if one.is_user]

    def age(self, seconds: float) -> None:
        """Let all usage decay for so long."""
        for one in self.by_name.values():
            one.usage *= self.decay**seconds

    def add(self, account: str, user: str, cpus: float, seconds: float) -> None:
        """Add what a job used in so many seconds that end now."""
        one = self.by_name.get((account, user))
        used = cpus * seconds * self.decay**seconds
        while one is not None:
            one.usage += used
            one = one.parent

    def calculate(self) -> None:
        """Rank all users by the fair tree, if that is the way."""
        if self.root is not None and not self.is_classic:
            self._left = self._rank = len(self.users)
            self._walk(self.root.children, is_tied=False)

    def factor(self, account: str, user: str) -> float:
        """Return a user's factor in an account, 0 to 1."""
        one = self.by_name.get((account, user))
        return 0.0 if one is None else one.factor

    def _walk(self, siblings: list[Association], *, is_tied: bool) -> None:
        """Rank the users below siblings, those with most shares by usage first.

        Accounts of equal level are one: their children are ranked together.
        """
        ordered = sorted(siblings, key=lambda one: (-one.level(), not one.is_user))
        for number, (_, equal) in enumerate(groupby(ordered, key=lambda one: one.level())):
            tied = is_tied and number == 0
            accounts: list[Association] = []
            for one in equal:
                if one.is_user:
                    self._rank = self._rank if tied else self._left
                    one.factor = self._rank / len(self.users)
                    self._left -= 1
                    tied = True
                else:
                    accounts += one.children
            if accounts:
                self._walk(accounts, is_tied=tied)

    # The classic factor: the noted usage of an association is only looked up again when one of its
    # own jobs is, so that it may be older than its account's.

    def settle(self) -> None:
        """Look up what all have used, before the usage since the last calculation is added."""
        if self.root is None or not self.is_classic:
            return
        below = list(self.root.children)
        self.root.effective = 1.0
        while below:
            one = below.pop(0)
            self._look_up(one)
            one.is_stale = True
            below += one.children

    def look_up(self, account: str, user: str) -> None:
        """Look up what an association has used: one of its jobs is given a priority."""
        one = self.by_name.get((account, user))
        if one is not None and self.is_classic and one.is_stale:
            self._look_up(one)
            one.is_stale = False

    def _look_up(self, one: Association) -> None:
        """Set effective usage: its own part, and by its shares of what its siblings used."""
        assert self.root is not None  # noqa: S101 - every association is below it
        if one.parent is None:
            return
        own = one.usage / self.root.usage if self.root.usage > 0 else 0.0
        part = one.part_of_shares()
        one.effective = own
        share, above = part, one.parent
        if above is not self.root:
            one.effective = own + (above.effective - own) * part
        while above.parent is not None:
            share *= above.part_of_shares()
            above = above.parent
        one.factor = self._factor(one.effective, share)

    def _factor(self, used: float, share: float) -> float:
        if share <= 0:
            return 0.0
        return float(2.0 ** -(used / share / max(self.priority.dampening, 1)))
