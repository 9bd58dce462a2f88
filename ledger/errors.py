"""The root of every refusal: what was checked, expected, found, and what to do next (G11).

Each part of the project has an ``errors`` module with classes below these; a class is one refusal. No text in an
error may hold a secret (G12): put a field's *name* into ``found``, never a credential or the value of a Password kind.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar

from pydantic import AfterValidator, BaseModel, ConfigDict

from ledger.exit_codes import ExitCode
from ledger.printable import refusal_words

Words = Annotated[str, AfterValidator(refusal_words)]
"""Text for people: escaped for a terminal and limited in length."""

MAX_NAMED = 100
"""Findings that the text of a group names; all of them are in ``findings``."""


class Finding(BaseModel):
    """One thing that is wrong, as shown to people and as stored in ``plan.refused``."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    name: str
    checked: Words
    expected: Words
    found: Words
    next_action: Words

    def __str__(self) -> str:
        return f"{self.name}: {self.checked}: expected {self.expected}, found {self.found}. Next: {self.next_action}"


class ApplyLedgerError(Exception):
    """Base of all errors that this project raises on purpose. Everything else that escapes is a defect."""

    exit_code: ClassVar[ExitCode] = ExitCode.ERROR

    def __init__(self, *, checked: str, expected: str, found: str, next_action: str) -> None:
        self.checked = refusal_words(checked)
        self.expected = refusal_words(expected)
        self.found = refusal_words(found)
        self.next_action = refusal_words(next_action)
        super().__init__(f"{self.checked}: expected {self.expected}, found {self.found}. Next: {self.next_action}")

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Everything that is wrong; a single refusal has exactly one."""
        return (
            Finding(
                name=type(self).__name__,
                checked=self.checked,
                expected=self.expected,
                found=self.found,
                next_action=self.next_action,
            ),
        )


class RefusalGroup(ApplyLedgerError):
    """Several refusals found in one attempt; none of them hides another (G11)."""

    exit_code: ClassVar[ExitCode] = ExitCode.REFUSED

    def __init__(self, *, checked: str, findings: Sequence[Finding], next_action: str) -> None:
        if not findings:
            raise ValueError("a refusal group needs at least one finding")
        self._findings = tuple(findings)
        super().__init__(
            checked=checked,
            expected="no findings",
            found=f"{len(findings)} finding{'s' if len(findings) != 1 else ''}",
            next_action=next_action,
        )

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Every single finding, in the order in which they were found."""
        return self._findings

    def __str__(self) -> str:
        lines = [f"{self.checked}: {self.found}. Next: {self.next_action}"]
        lines += [f"  - {finding}" for finding in self._findings[:MAX_NAMED]]
        rest = len(self._findings) - MAX_NAMED
        return "\n".join([*lines, f"  and {rest:,} more"] if rest > 0 else lines)


class UsageError(ApplyLedgerError):
    """The options of a command contradict each other or are incomplete."""

    exit_code: ClassVar[ExitCode] = ExitCode.USAGE


class SecretInWordsError(UsageError):
    """A reason or an actor contains a known token or password; nothing is recorded (G12)."""


class ConfigurationError(ApplyLedgerError):
    """A configuration file, environment variable or option has no usable value."""
