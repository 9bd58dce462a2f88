"""Merkle trees as RFC 6962 (section 2.1) has them, over leaves that come one after the other, in bounded memory.

A tree of any size is kept as its frontier: the roots of the whole subtrees that it consists of, from the left, some
twenty of them for a million leaves. A proof of one leaf is computed in one pass over all of them.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence

_sha256, _LEAF, _NODE = hashlib.sha256, b"\x00", b"\x01"
EMPTY_ROOT = hashlib.sha256(b"").digest()


def leaf_hash(data: bytes) -> bytes:
    """The hash of a leaf; the byte before it keeps a leaf from passing for an inner node."""
    return hashlib.sha256(b"\x00" + data).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """The hash of an inner node."""
    return hashlib.sha256(b"\x01" + left + right).digest()


class Frontier:
    """A tree that grows to the right.

    Args:
        size: how many leaves it has already.
        roots: those of its whole subtrees, from the left; as many as ``size`` has bits that are set.

    Raises:
        ValueError: another number of roots, or roots that are no hashes.
    """

    __slots__ = ("_roots", "size")

    def __init__(self, size: int = 0, roots: Sequence[bytes] = ()) -> None:
        if size < 0 or len(roots) != size.bit_count() or any(len(root) != 32 for root in roots):
            raise ValueError(f"{len(roots)} roots are no tree of {size} leaves")
        self.size = size
        self._roots = list(roots)

    @property
    def roots(self) -> tuple[bytes, ...]:
        """Of the whole subtrees, from the left."""
        return tuple(self._roots)

    def append(self, data: bytes) -> None:
        """Add a leaf."""
        root = leaf_hash(data)
        size = self.size
        while size & 1:
            root = node_hash(self._roots.pop(), root)
            size >>= 1
        self._roots.append(root)
        self.size += 1

    def extend(self, leaves: Iterable[bytes]) -> None:
        """Add leaves, level by level: much less work for each of many than :meth:`append`."""
        level = [_sha256(_LEAF + data).digest() for data in leaves]
        count, left, whole = len(level), self.size, []
        while level:
            if left & 1:
                level.insert(0, self._roots.pop())
            if len(level) & 1:
                whole.append(level.pop())
            level = [_sha256(_NODE + one + other).digest() for one, other in zip(level[::2], level[1::2], strict=True)]
            left >>= 1
        self._roots += reversed(whole)
        self.size += count

    def root(self) -> bytes:
        """The root of the whole tree."""
        if not self._roots:
            return EMPTY_ROOT
        *others, root = self._roots
        for left in reversed(others):
            root = node_hash(left, root)
        return root


class InclusionProof:
    """The path of one leaf, computed while the leaves go by.

    The path consists of the roots of runs of leaves beside the one that is proven; which runs those are follows from
    the index and the size alone.

    Args:
        index: of the leaf, from 0.
        size: of the tree.

    Raises:
        ValueError: the tree has no such leaf.
    """

    def __init__(self, index: int, size: int) -> None:
        if not 0 <= index < size:
            raise ValueError(f"a tree of {size} leaves has none at {index}")
        # Siblings from the leaf upwards; each a run [start, end) of leaves.
        self._runs = list(_siblings(index, 0, size))
        self._roots: dict[tuple[int, int], bytes] = {}
        self._left = iter(sorted(self._runs))
        self._current = next(self._left, None)
        self._tree = Frontier()
        self._next = 0

    def feed(self, data: bytes) -> None:
        """Take the next leaf."""
        run = self._current
        if run is not None and run[0] <= self._next:
            self._tree.append(data)
            if self._next + 1 == run[1]:
                self._roots[run] = self._tree.root()
                self._tree = Frontier()
                self._current = next(self._left, None)
        self._next += 1

    @property
    def path(self) -> list[bytes]:
        """From the leaf upwards.

        Raises:
            ValueError: not all leaves were seen.
        """
        if len(self._roots) != len(self._runs):
            raise ValueError(f"only {self._next} leaves were seen")
        return [self._roots[run] for run in self._runs]


async def inclusion_path(leaves: AsyncIterator[bytes], index: int, size: int) -> list[bytes]:
    """The path of one leaf in one pass over all."""
    proof = InclusionProof(index, size)
    async for leaf in leaves:
        proof.feed(leaf)
    return proof.path


def root_from_path(leaf: bytes, index: int, size: int, path: Iterable[bytes]) -> bytes | None:
    """The root that a leaf, its place and its path lead to; None where the path is of another length (RFC 9162)."""
    if not 0 <= index < size:
        return None
    at, last, root = index, size - 1, leaf_hash(leaf)
    for sibling in path:
        if last == 0:
            return None
        if at & 1 or at == last:
            root = node_hash(sibling, root)
            while not at & 1 and at:
                at, last = at >> 1, last >> 1
        else:
            root = node_hash(root, sibling)
        at, last = at >> 1, last >> 1
    return root if last == 0 else None


def _siblings(index: int, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The runs beside a leaf, the nearest first."""
    if end - start == 1:
        return
    half = 1 << ((end - start - 1).bit_length() - 1)
    middle = start + half
    if start + index < middle:
        yield from _siblings(index, start, middle)
        yield (middle, end)
    else:
        yield from _siblings(index - half, middle, end)
        yield (start, middle)
