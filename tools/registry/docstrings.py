"""Reads the docstring of a tool written in Python: what it does, and the words for each parameter.

Google's and NumPy's sections and ``:param:`` fields are known. Knows texts; it must not know tools.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_SECTION = re.compile(
    r"^(?:(?:Args|Arguments|Parameters|Params|Returns):[ \t]*$"
    r"|(?:Parameters|Returns)[ \t]*\n-{3,}[ \t]*$|:param\s)",
    re.M,
)


@dataclass(frozen=True)
class Docstring:
    """What a docstring says: the description for the model, and the words of the parameters and the value."""

    description: str
    params: dict[str, str] = field(default_factory=dict)
    returns: str = ""


def read_docstring(text: str) -> Docstring:
    """The parts of a docstring; one without such sections is a description as a whole."""
    if not _SECTION.search(text):
        return Docstring(text)
    from docstring_parser import parse  # here: it takes 20 ms, and most tools need it not

    found = parse(text)
    said = {
        name.strip().lstrip("*"): _one_line(param.description)
        for param in found.params
        for name in param.arg_name.split(",")
    }
    parts = (found.short_description, found.long_description)
    return Docstring(
        "\n\n".join(part for part in parts if part),
        said,
        _one_line(found.returns.description if found.returns else ""),
    )


def _one_line(text: str | None) -> str:
    return " ".join((text or "").split()).removesuffix(".")
