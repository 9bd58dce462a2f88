"""A page of lines and blocks on a rich console: cheap for the many short lines of a long review."""

from __future__ import annotations

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.text import Text

LINES_AT_ONCE = 200
"""Lines that are handed to the console together: its own cost for each call is that of writing several lines."""


class Page:
    """Prints in order; what is pending is printed by :meth:`flush`."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._width = console.width
        self._pending: list[Text] = []

    def line(self, text: Text, columns: int = 0) -> None:
        """One line moved to the right; where it does not fit, its wrapped lines too."""
        if columns + text.cell_len > self._width:
            self._add(Padding(text, (0, 0, 0, columns), expand=False))
            return
        self._pending.append(Text(" " * columns).append_text(text) if columns else text)
        if len(self._pending) >= LINES_AT_ONCE:
            self.flush()

    def blank(self) -> None:
        """An empty line."""
        self._pending.append(Text())

    def block(self, content: RenderableType, columns: int) -> None:
        """A table moved to the right, with an empty line below."""
        self._add(Padding(content, (0, 0, 1, columns), expand=False))

    def indented(self, content: RenderableType, columns: int) -> None:
        """A renderable moved to the right, without an empty line below."""
        self._add(Padding(content, (0, 0, 0, columns), expand=False))

    def last_line(self, text: Text) -> None:
        """One line that is never wrapped, whatever the width."""
        self._pending.append(text)
        self.flush()

    def flush(self) -> None:
        """Print what is pending."""
        if self._pending:
            # Each of these lines fits, so that nothing is wrapped.
            self._console.print(Text("\n").join(self._pending), soft_wrap=True)
            self._pending = []

    def _add(self, content: RenderableType) -> None:
        """Break the content into lines that fit, without the blanks with which rich fills them up to the width."""
        for segments in self._console.render_lines(content, pad=False):
            line = Text.assemble(*((segment.text, segment.style or "") for segment in segments))
            line.rstrip()
            self._pending.append(line)
        if len(self._pending) >= LINES_AT_ONCE:
            self.flush()
