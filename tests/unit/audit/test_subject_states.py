"""Documents of which few are in memory are those that were put."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.audit import subject_states
from ledger.audit.subject_states import SubjectStates
from ledger.projections.fold import Key, State


class _Words(State):
    words: str


_STEPS = st.lists(st.tuples(st.sampled_from("abcdefgh"), st.booleans(), st.text(max_size=20)), max_size=60)


@pytest.mark.rules("G9")
@settings(deadline=None)
@given(_STEPS, st.integers(1, 4))
def test_g09_documents_are_what_was_put_last(steps: list[tuple[str, bool, str]], at_hand: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subject_states, "_AT_HAND", at_hand)
        states = SubjectStates()
        expected: dict[Key, _Words] = {}
        for number, (name, put, words) in enumerate(steps):
            key = Key(name, "")
            assert states.get(key) == expected.get(key)
            if put:
                expected[key] = _Words(position=number, words=words)
                states.put(key, expected[key])
        assert dict(states.items()) == {key: state.canonical_bytes() for key, state in expected.items()}
        assert len(list(states.items())) == len(expected)
        states.close()
