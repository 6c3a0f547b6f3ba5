"""Options in what help() shows, from the types that editors know them by."""

from __future__ import annotations

import ast
import functools
import textwrap
from collections.abc import Callable
from typing import Any, TypeVar

_Documented = TypeVar("_Documented")


def lists(options: Any) -> Callable[[_Documented], _Documented]:
    """Adds the options of a type to what a function or a class says of itself."""
    def add(to: _Documented) -> _Documented:
        to.__doc__ = f"{to.__doc__}\n\n    Options:\n\n{listed(options)}"
        return to
    return add


@functools.cache
def listed(options: Any) -> str:
    """The names of options and what each is, in the order of the program's help."""
    return "\n".join(_line(name, getattr(kept, "__forward_arg__", kept)) for name, kept in options.__annotations__.items())


@functools.cache
def _line(name: str, kept: str) -> str:
    """kept is the text of an annotation: Annotated[type, "what it is"]."""
    annotation: Any = ast.parse(kept, mode="eval").body
    _, about = annotation.slice.elts
    return textwrap.fill(f"{name}: {ast.literal_eval(about)}", 100, initial_indent=" " * 4, subsequent_indent=" " * 8,
                         break_on_hyphens=False, break_long_words=False)
