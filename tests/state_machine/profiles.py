"""How long the state machine runs: Hypothesis profiles whose names begin with ``state-``.

    pytest tests/state_machine --hypothesis-profile=state-campaign --timeout=0

Without such a name it is ``state-ci``: short, and the same examples each time.
"""

from __future__ import annotations

from hypothesis import HealthCheck, Phase, settings

_SLOW = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]


def register() -> None:
    """Make the profiles known."""
    settings.register_profile(
        "state-ci",
        derandomize=True,
        database=None,
        max_examples=60,
        stateful_step_count=40,
        deadline=None,
        print_blob=True,
        suppress_health_check=_SLOW,
    )
    settings.register_profile(
        "state-campaign",
        max_examples=2000,
        stateful_step_count=100,
        deadline=None,
        print_blob=True,
        suppress_health_check=_SLOW,
    )
    settings.register_profile(
        "state-mutants",
        parent=settings.get_profile("state-ci"),
        max_examples=120,
        phases=(Phase.generate,),
        report_multiple_bugs=False,
    )


def chosen() -> settings:
    """The profile that was asked for by name, else the short one."""
    name = settings.get_current_profile_name()
    return settings.get_profile(name if name.startswith("state-") else "state-ci")
