"""Which nodes with devices have room for a job's tasks, and which of them is best."""

from __future__ import annotations

import cython
import numpy

from windtunnel.kernel.bits import lowest_bit, without_lowest
from windtunnel.kernel.device_draws import device_draw
from windtunnel.kernel.device_kinds import DEVICE_MILLI, DeviceKinds
from windtunnel.kernel.device_room import (
    BUCKET_SHIFT,
    SET_IN_USE,
    SET_LEVELS,
    SET_WITH_GPUS,
    DeviceRoom,
)
from windtunnel.kernel.device_scores import device_known_score, device_score
from windtunnel.kernel.device_scoring import (
    BY_ASKED,
    BY_BEST_FIT,
    BY_LEAST_IDLE,
    BY_MOST_IDLE,
    BY_WORST_FIT,
    LAST_BY_LOAD,
    LAST_PLAIN,
    TIES_BY_DRAW,
    TIES_BY_INDEX,
    TIES_BY_NAME,
    DeviceScoring,
)
from windtunnel.kernel.marks import compiled
from windtunnel.kernel.pairs import Pairs

#: More than there are nodes: a score and a node's index make one number, a node's key.
DEVICE_SPAN = cython.declare(cython.longlong, 1 << 21)
#: Above every key; its negative is below every key.
DEVICE_NO_KEY = cython.declare(cython.longlong, 1 << 62)
#: More tasks than any node has room for.
MANY_TASKS = cython.declare(cython.longlong, 1 << 40)
#: Random draws from here on are for nodes; see `windtunnel.placements.scored`.
NODE_DRAWS = cython.declare(cython.longlong, 1 << 32)


@compiled
def device_may_use(kinds: DeviceKinds, kind: cython.int, which: cython.int) -> cython.bint:
    """Return whether a kind's tasks may run on a node at all: its GPU type is acceptable."""
    mask: cython.longlong = kinds.mask[kind]
    return mask < 0 or (kinds.sets.bits[mask + (which >> 6)] >> (which & 63)) & 1 != 0


@compiled
def device_room_for(
    room: DeviceRoom, kinds: DeviceKinds, kind: cython.int, which: cython.int
) -> cython.longlong:
    """Return how many of a job's tasks fit a node now; whether it is withheld is not looked at."""
    return device_room_up_to(room, kinds, kind, which, kinds.tasks[kind])


@compiled
def device_room_up_to(
    room: DeviceRoom,
    kinds: DeviceKinds,
    kind: cython.int,
    which: cython.int,
    most: cython.longlong,
) -> cython.longlong:
    """Return how many of at most so many tasks of a job's kind fit a node now."""
    device: cython.int
    part: cython.longlong = kinds.part[kind]
    fitting: cython.longlong = 0
    found: cython.longlong = most
    if not device_may_use(kinds, kind, which):
        return 0
    if kinds.cores[kind] > 0:
        found = min(found, room.cores[which] // kinds.cores[kind])
    if kinds.mem[kind] > 0:
        found = min(found, room.mem[which] // kinds.mem[kind])
    if found <= 0 or kinds.milli[kind] == 0:
        return max(found, 0)
    if room.cluster.pooled:
        return min(found, room.total[which] // kinds.milli[kind])
    if part == 0:
        return min(found, room.idle[which] // kinds.whole[kind])
    for device in range(which * room.cluster.each, (which + 1) * room.cluster.each):
        fitting += room.devices[device] // part
        if fitting >= found:
            return found
    return fitting


@compiled
def device_has_shares(
    room: DeviceRoom, part: cython.longlong, which: cython.int, tasks: cython.longlong
) -> cython.bint:
    """Return whether so many shares fit a node's devices."""
    device: cython.int
    fitting: cython.longlong = 0
    for device in range(which * room.cluster.each, (which + 1) * room.cluster.each):
        fitting += room.devices[device] // part
        if fitting >= tasks:
            return True
    return False


@compiled
def device_has_room(
    room: DeviceRoom,
    kinds: DeviceKinds,
    kind: cython.int,
    which: cython.int,
    tasks: cython.longlong,
) -> cython.bint:
    """Return whether so many of a job's tasks fit a node that they may use."""
    part: cython.longlong = kinds.part[kind]
    if room.cores[which] < tasks * kinds.cores[kind]:
        return False
    if room.mem[which] < tasks * kinds.mem[kind]:
        return False
    if room.cluster.pooled:
        return room.total[which] >= tasks * kinds.milli[kind]
    if part == 0:
        return room.idle[which] >= tasks * kinds.whole[kind]
    if room.roomiest[which] < part or room.total[which] < tasks * part:
        return False
    return tasks == 1 or device_has_shares(room, part, which, tasks)


@compiled
def device_candidates(
    room: DeviceRoom, kinds: DeviceKinds, kind: cython.int, tasks: cython.longlong
) -> cython.longlong:
    """Return where in ``room.sets`` the nodes begin whose GPUs may suffice.

    -1: any may, because the tasks need none; -2: none does.
    """
    least: cython.longlong
    words: cython.longlong = room.cluster.words
    if kinds.milli[kind] == 0:
        return -1
    if room.cluster.pooled or kinds.part[kind] == 0:
        least = tasks * kinds.milli[kind] // DEVICE_MILLI
        if least > room.cluster.top:
            return -2
        if least == 0:
            return SET_WITH_GPUS * words
        return (SET_LEVELS + least - 1) * words
    least = kinds.part[kind] >> BUCKET_SHIFT
    if least == 0:
        return SET_WITH_GPUS * words
    return (room.first_bucket + least - 1) * words


@compiled
def device_word(
    room: DeviceRoom,
    kinds: DeviceKinds,
    kind: cython.int,
    row: cython.longlong,
    word: cython.int,
) -> cython.longlong:
    """Return a word of the candidates that a search looks at, and that the kind may use."""
    found: cython.longlong = room.within[word]
    if row >= 0:
        found &= room.sets[row + word]
    if kinds.mask[kind] >= 0:
        found &= kinds.sets.bits[kinds.mask[kind] + word]
    return found


@compiled
def device_key(room: DeviceRoom, scoring: DeviceScoring, which: cython.int) -> cython.longlong:
    """Return the key of a node, of scores that are a column of the tables: the lowest key wins."""
    score: cython.longlong = 0
    if scoring.code == BY_BEST_FIT:
        score = room.total[which]
    elif scoring.code == BY_WORST_FIT:
        score = -room.total[which]
    elif scoring.code in (BY_LEAST_IDLE, BY_MOST_IDLE):
        score = room.total[which] if room.cluster.pooled else room.idle[which]
        if scoring.code == BY_MOST_IDLE:
            score = -score
    return cython.cast(cython.longlong, score) * DEVICE_SPAN + which


@compiled
def device_best_key(
    room: DeviceRoom,
    scoring: DeviceScoring,
    kinds: DeviceKinds,
    kind: cython.int,
    tasks: cython.longlong,
) -> cython.longlong:
    """Return a key below which no node that has room can score better."""
    score: cython.longlong = 0
    milli: cython.longlong = tasks * kinds.milli[kind]
    if scoring.code == BY_BEST_FIT or (scoring.code == BY_LEAST_IDLE and room.cluster.pooled):
        score = milli
    elif scoring.code == BY_LEAST_IDLE and kinds.part[kind] == 0:
        score = milli // DEVICE_MILLI
    elif scoring.code == BY_WORST_FIT or (scoring.code == BY_MOST_IDLE and room.cluster.pooled):
        score = -room.cluster.max_milli
    elif scoring.code == BY_MOST_IDLE:
        score = -room.cluster.top
    return (score + 1) * DEVICE_SPAN


@compiled
def device_plain_best(
    room: DeviceRoom,
    scoring: DeviceScoring,
    kinds: DeviceKinds,
    kind: cython.int,
    tasks: cython.longlong,
) -> cython.int:
    """Return what `DeviceSearch.best` does: scores are a column of the tables, ties by index."""
    own: cython.int
    word: cython.int
    which: cython.int
    key: cython.longlong
    found: cython.longlong
    best: cython.longlong = DEVICE_NO_KEY
    enough: cython.longlong = device_best_key(room, scoring, kinds, kind, tasks)
    row: cython.longlong = device_candidates(room, kinds, kind, tasks)
    mask: cython.longlong = kinds.mask[kind]
    words: cython.int = room.cluster.words
    if row == -2:
        return -1
    # Of nodes of one kind that run nothing the first one is as good as any.
    for own in range(room.cluster.kinds):
        which = device_first_idle(room, kinds, kind, own)
        if which >= 0 and device_has_room(room, kinds, kind, which, tasks):
            best = min(best, device_key(room, scoring, which))
    row = max(row, SET_IN_USE * words)  # all that are in use, where no GPUs are asked for
    for word in range(words):
        found = room.sets[row + word] & room.sets[SET_IN_USE * words + word] & room.within[word]
        if found == 0:
            continue
        if best < enough and ((best & (DEVICE_SPAN - 1)) >> 6) < word:
            break  # the first of those that cannot be bettered wins
        if mask >= 0:
            found &= kinds.sets.bits[mask + word]
        while found != 0:
            which = (word << 6) + lowest_bit(found)
            found = without_lowest(found)
            key = device_key(room, scoring, which)
            if key < best and device_has_room(room, kinds, kind, which, tasks):
                best = key
    if best == DEVICE_NO_KEY:
        return -1
    return cython.cast(cython.int, best & (DEVICE_SPAN - 1))


@compiled
def device_first_idle(
    room: DeviceRoom, kinds: DeviceKinds, kind: cython.int, own: cython.int
) -> cython.int:
    """Return the first node of a kind that runs nothing and that a job may use, or -1.

    Nodes of one kind have one GPU type, but a job may be bound to some nodes of it alone.
    """
    word: cython.int
    begin: cython.int
    found: cython.longlong
    which: cython.int = room.first_idle(own)
    if which < 0 or device_may_use(kinds, kind, which):
        return which
    begin = (room.first_kind + own) * room.cluster.words
    for word in range(which >> 6, room.cluster.words):
        found = device_word(room, kinds, kind, begin, word)
        if found != 0:
            return (word << 6) + lowest_bit(found)
    return -1


@compiled
def device_tie(room: DeviceRoom, scoring: DeviceScoring, which: cython.int) -> cython.longlong:
    """Return what decides between nodes of one score; lower wins."""
    if scoring.ties == TIES_BY_NAME:
        return room.cluster.rank[which]
    if scoring.ties == TIES_BY_DRAW:
        return device_draw(scoring, NODE_DRAWS + which)
    return which


@cython.final
@cython.cclass
class DeviceSearch:
    """What a search for a place works with, and the best node that it has seen so far.

    Args:
        room: what is free.
        scoring: the placement.
        kinds: the kinds of jobs.
        place: where (node, grant) pairs are written.

    Attributes:
        which: the best node, -1 = none.
        score: its score.
        tie: what decides between it and a node of the same score; lower wins.
        kind_room: scratch: how many tasks fit a node of each kind that runs nothing.
        rack_room: scratch: a number a rack.
    """

    room: DeviceRoom
    scoring: DeviceScoring
    kinds: DeviceKinds
    place: Pairs
    which: cython.int
    score: cython.longlong
    tie: cython.longlong
    kind_room: cython.longlong[::1]
    rack_room: cython.longlong[::1]

    def __init__(
        self, room: DeviceRoom, scoring: DeviceScoring, kinds: DeviceKinds, place: Pairs
    ) -> None:
        self.room, self.scoring, self.kinds, self.place = room, scoring, kinds, place
        self.kind_room = numpy.zeros(room.cluster.kinds, dtype=numpy.int64)
        self.rack_room = numpy.zeros(room.cluster.racks, dtype=numpy.int64)

    @compiled
    def look_at(self, kind: cython.int, which: cython.int, tasks: cython.longlong) -> cython.void:
        """Take a node for the best one if it has room and is better."""
        score: cython.longlong
        tie: cython.longlong
        if not device_has_room(self.room, self.kinds, kind, which, tasks):
            return
        if (
            tasks == self.kinds.chunk[kind]
            or LAST_PLAIN < self.scoring.code <= LAST_BY_LOAD  # of these no job matters
        ):
            score = device_known_score(self.room, self.scoring, self.kinds, kind, which)
        else:
            score = device_score(self.room, self.scoring, self.kinds, kind, which, tasks)
        if self.which >= 0 and score < self.score:
            return
        tie = device_tie(self.room, self.scoring, which)
        if (
            self.which < 0
            or score > self.score
            or tie < self.tie
            or (tie == self.tie and which < self.which)
        ):
            self.which, self.score, self.tie = which, score, tie

    @compiled
    def best(self, kind: cython.int, tasks: cython.longlong) -> cython.int:
        """Return the node within sight with room for the tasks that scores highest, or -1."""
        own: cython.int
        word: cython.int
        which: cython.int
        row: cython.longlong
        found: cython.longlong
        alike: cython.bint = self.scoring.ties == TIES_BY_INDEX
        words: cython.int = self.room.cluster.words
        if self.scoring.code == BY_ASKED:
            alike = False  # it may go by a node's name, number or rack
        if self.scoring.code <= LAST_PLAIN and alike:
            return device_plain_best(self.room, self.scoring, self.kinds, kind, tasks)
        self.which = -1
        row = device_candidates(self.room, self.kinds, kind, tasks)
        if row == -2:
            return -1
        if alike:
            # Of nodes of one kind that run nothing the first one is as good as any.
            for own in range(self.room.cluster.kinds):
                which = device_first_idle(self.room, self.kinds, kind, own)
                if which >= 0:
                    self.look_at(kind, which, tasks)
        for word in range(words):
            found = device_word(self.room, self.kinds, kind, row, word)
            if alike:
                found &= self.room.sets[SET_IN_USE * words + word]
            while found != 0:
                which = (word << 6) + lowest_bit(found)
                found = without_lowest(found)
                self.look_at(kind, which, tasks)
        return self.which
