"""A hash of names, computed for whole columns at once.

It says cheaply which names may be the same; who asks compares the names themselves where it does.
So nothing relies on it being different for different texts, and it need not resist an attacker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa

#: 2^64 over the golden ratio, odd: Fibonacci hashing (Knuth, TAOCP 3, 6.4).
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)
#: Bytes that a hash looks at; longer texts that begin alike have one hash.
_LOOKED_AT = 512
_WORD = 8
#: Texts that are hashed at once: what they take stays near the processor, and is used again.
_AT_ONCE = 2**15
#: Last words of a text that can be read as a number of their own size: bytes -> type.
_TAILS = {0: "", 1: "<u1", 2: "<u2", 4: "<u4"}
#: What of eight bytes read belongs to the text, by how many do.
_KEEP = np.array([(1 << 8 * n) - 1 for n in range(_WORD + 1)], np.uint64)


def hashes(texts: pa.Array) -> np.ndarray:
    """Return the hash of each text, uint64, shape (texts,); a null has that of an empty text."""
    _, offsets, data = texts.buffers()
    if not len(texts):
        return np.empty(0, np.uint64)
    begins = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    held = np.frombuffer(data if data is not None else b"", np.uint8)
    if len(texts) <= _AT_ONCE:
        return _of_some(held, begins)
    found = np.empty(len(texts), np.uint64)
    for begin in range(0, len(texts), _AT_ONCE):
        found[begin : begin + _AT_ONCE] = _of_some(held, begins[begin : begin + _AT_ONCE + 1])
    return found


def of_pairs(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the hash of each pair of names.

    Args:
        left: hashes of the first names, uint64, shape (pairs,).
        right: hashes of the second names, the same.
    """
    found = left.copy()
    _stir(found, right * _FACTOR)
    return found


def _of_some(held: np.ndarray, begins: np.ndarray) -> np.ndarray:
    """Return the hashes of texts that lie one behind the other, uint64, shape (texts,).

    Args:
        held: the bytes.
        begins: where each text begins, and the last one ends, int32, shape (texts + 1,).
    """
    lengths = np.diff(begins)
    length = int(lengths[0])
    if length % _WORD in _TAILS and 0 < length <= _LOOKED_AT and bool((lengths == length).all()):
        return _of_one_length(held, int(begins[0]), len(lengths), length)
    first, last = int(begins[0]), int(begins[-1])
    padded = np.concatenate([held[first:last], np.zeros(_WORD, np.uint8)])
    return _of_any_length(padded, begins[:-1].astype(np.int64) - first, lengths)


def _of_one_length(held: np.ndarray, first: int, count: int, length: int) -> np.ndarray:
    """Return the hashes of texts of one length that lie one behind the other.

    Args:
        held: the bytes.
        first: where the first text begins.
        length: of each, bytes; a multiple of `_WORD` and a tail of `_TAILS`.
    """
    found = np.full(count, length, np.uint64)
    spare = np.empty_like(found)
    whole = length - length % _WORD
    for at in range(0, whole, _WORD):
        words = np.ndarray((count,), "<u8", held, first + at, (length,))
        _stir(found, words, spare)
    if length > whole:
        tail = np.ndarray((count,), _TAILS[length - whole], held, first + whole, (length,))
        _stir(found, tail, spare)
    return found


def _of_any_length(held: np.ndarray, begins: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Return the hashes of texts.

    Args:
        held: the bytes, and a word more.
        begins: where each text begins, int64, shape (texts,).
        lengths: of the texts, bytes, shape (texts,).
    """
    found = lengths.astype(np.uint64)
    words = np.ndarray((len(held) - _WORD + 1,), "<u8", held, 0, (1,))
    for at in range(0, min(int(lengths.max()), _LOOKED_AT), _WORD):
        there = np.flatnonzero(lengths > at)
        mine = found[there]
        _stir(mine, words[begins[there] + at] & _KEEP[np.minimum(lengths[there] - at, _WORD)])
        found[there] = mine
    return found


def _stir(found: np.ndarray, words: np.ndarray, spare: np.ndarray | None = None) -> None:
    """Bring another word of each text into the hashes, in place."""
    np.bitwise_xor(found, words, out=found)
    np.multiply(found, _FACTOR, out=found)
    found ^= np.right_shift(found, _HALF, out=spare)
