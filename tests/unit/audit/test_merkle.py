"""The tree is RFC 6962's, whatever its size; proofs lead to its root and to no other."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.audit.merkle import EMPTY_ROOT, Frontier, InclusionProof, leaf_hash, node_hash, root_from_path


def _root(leaves: list[bytes]) -> bytes:
    """The definition, word for word (RFC 6962, 2.1)."""
    if not leaves:
        return hashlib.sha256(b"").digest()
    if len(leaves) == 1:
        return leaf_hash(leaves[0])
    half = 1
    while half * 2 < len(leaves):
        half *= 2
    return node_hash(_root(leaves[:half]), _root(leaves[half:]))


_LEAVES = st.lists(st.binary(max_size=8), max_size=70)


@settings(deadline=None)
@given(_LEAVES, st.integers(0, 70))
def test_a_tree_that_grows_has_the_root_of_the_definition_also_after_a_pause(leaves: list[bytes], pause: int) -> None:
    tree = Frontier()
    for number, leaf in enumerate(leaves):
        if number == pause:
            tree = Frontier(tree.size, tree.roots)
        tree.append(leaf)
    assert tree.root() == _root(leaves)
    assert len(tree.roots) == len(leaves).bit_count()


@settings(deadline=None)
@given(st.lists(_LEAVES, max_size=6))
def test_leaves_that_come_together_make_the_tree_that_they_make_one_by_one(pages: list[list[bytes]]) -> None:
    together, apart = Frontier(), Frontier()
    for leaves in pages:
        together.extend(leaves)
        for leaf in leaves:
            apart.append(leaf)
        assert (together.size, together.roots) == (apart.size, apart.roots)


@settings(deadline=None)
@given(_LEAVES.filter(bool), st.data())
def test_a_path_leads_from_its_leaf_to_the_root_and_from_no_other(leaves: list[bytes], data: st.DataObject) -> None:
    index = data.draw(st.integers(0, len(leaves) - 1))
    proof = InclusionProof(index, len(leaves))
    for leaf in leaves:
        proof.feed(leaf)
    path, root = proof.path, _root(leaves)
    assert root_from_path(leaves[index], index, len(leaves), path) == root
    assert root_from_path(leaves[index] + b"x", index, len(leaves), path) != root
    assert root_from_path(leaves[index], index, len(leaves), [*path, bytes(32)]) is None
    if path:
        assert root_from_path(leaves[index], index, len(leaves), path[:-1]) is None
        other = data.draw(st.integers(0, len(leaves) - 1).filter(lambda number: number != index))
        if leaves[other] != leaves[index]:
            assert root_from_path(leaves[index], other, len(leaves), path) != root


def test_what_is_no_tree_is_refused() -> None:
    assert Frontier().root() == EMPTY_ROOT
    for size, roots in ((3, [bytes(32)]), (1, [bytes(31)]), (-1, [])):
        with pytest.raises(ValueError):
            Frontier(size, roots)
    for index, size in ((0, 0), (3, 3), (-1, 3)):
        with pytest.raises(ValueError):
            InclusionProof(index, size)
        assert root_from_path(b"", index, size, []) is None
    with pytest.raises(ValueError, match="only 0 leaves"):
        _ = InclusionProof(0, 2).path


@pytest.mark.parametrize(
    ("count", "root"),
    [
        (1, "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d"),
        (2, "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125"),
        (8, "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328"),
    ],
)
def test_the_roots_of_other_programs_come_out(count: int, root: str) -> None:
    """Known answers of Certificate Transparency's own implementation."""
    leaves = ["", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"]
    tree = Frontier()
    for leaf in leaves[:count]:
        tree.append(bytes.fromhex(leaf))
    assert tree.root().hex() == root
