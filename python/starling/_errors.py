"""What goes wrong, as exceptions."""

from __future__ import annotations

from collections.abc import Sequence


class Error(Exception):
    """An error of starling: one sentence, and the last lines of the program's log."""

    def __init__(self, sentence: str, log: Sequence[str] = ()) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.log = list(log)

    def __str__(self) -> str:
        return "\n  ".join([self.sentence, *self.log[-10:]])

    def __reduce__(self) -> tuple[type[Error], tuple[str, list[str]]]:
        return type(self), (self.sentence, self.log)


class Mistake(Error, ValueError):
    """A value or a file that starling refuses: what was found, what it wants, what to do."""


class Failed(Error, RuntimeError):
    """A run that failed otherwise: a full disk, a lost worker, too little memory."""


def mistake(where: str, found: str, want: str, fix: str = "") -> Mistake:
    """Words a mistake as the program does."""
    return Mistake(f"{where}: found {found}, want {want}" + (f"; {fix}" if fix else ""))
