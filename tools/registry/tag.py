"""Response tags as tools declare them: the line ``PREFIX: words`` that calls a tool, and its pattern.

Knows parameters and regular expressions; must not know replies (neuro/reading/ finds the lines) or doors.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from quoth.tools.errors import DefinitionError, ToolError, did_you_mean
from quoth.tools.registry.parameters import Param
from quoth.tools.safe_regex import compiled

PREFIX = re.compile(r"[A-Z][A-Z0-9_-]*\Z")
CONFIDENCE = "CONFIDENCE"  # how sure a model says it is, on a line like those of tags


@dataclass(frozen=True)
class Tag:
    """A response tag. Without a ``pattern``, plain words fill the required parameters; with one, the words
    must match it as a whole, and its groups are the parameters named by ``groups``. ``example`` is the line
    that a model is shown, and ``strip`` says whether people are spared the lines."""

    prefix: str
    pattern: str = ""
    groups: tuple[str, ...] = ()
    example: str = ""
    strip: bool = True

    def to_json(self) -> str | dict[str, Any]:
        """The prefix alone where there is no more, else whatever is no default."""
        found = {name: getattr(self, name) for name in KEYS if getattr(self, name) != _DEFAULTS.get(name)}
        if not found.keys() - {"prefix"}:
            return self.prefix
        return {name: list(value) if name == "groups" else value for name, value in found.items()}


KEYS = tuple(field.name for field in fields(Tag))
_DEFAULTS = {field.name: field.default for field in fields(Tag)}
_MEANING = {"prefix": "a text", "pattern": "a text", "example": "a text", "strip": "True or False"}


def tag_of(tool: str, written: Any, params: Sequence[Param]) -> Tag | None:
    """The tag that a definition gives: as a text, a dictionary or a Tag; None for none. A pattern without
    groups fills the first required parameter. Raises DefinitionError."""
    if written is None or written == "":
        return None
    if isinstance(written, str):
        written = {"prefix": written}
    elif isinstance(written, Tag):
        written = {name: getattr(written, name) for name in KEYS}
    elif not isinstance(written, Mapping):
        raise DefinitionError(f"{tool}: :tag is a text such as RESEARCH, or a dictionary with :prefix.")
    given = {str(getattr(key, "name", key)): value for key, value in written.items()}
    for key in given:
        if key not in KEYS:
            known = " ".join(f":{name}" for name in KEYS)
            hint = did_you_mean(key, KEYS, mark=":")
            raise DefinitionError(f"{tool}, :tag: there is no option :{key}; the options are {known}.{hint}")
    for key, meaning in _MEANING.items():
        if not isinstance(given.get(key, _DEFAULTS[key]), bool if key == "strip" else str):
            raise DefinitionError(f"{tool}, :tag: :{key} is {meaning}.")
    groups = given.pop("groups", None) or ()
    if not isinstance(groups, Sequence) or isinstance(groups, str):
        raise DefinitionError(
            f'{tool}, :tag: :groups is a list of parameters, such as ["category" "content"].'
        )
    tag = Tag(**given, groups=tuple(str(getattr(name, "name", name)) for name in groups))
    if not PREFIX.match(tag.prefix):
        raise DefinitionError(
            f"{tool}, :tag: a prefix is upper-case letters, digits, hyphens and underscores after a first "
            f"letter, such as RESEARCH, not {tag.prefix!r}."
        )
    if tag.prefix == CONFIDENCE:
        raise DefinitionError(f"{tool}, :tag: CONFIDENCE is how sure a model says it is; choose another.")
    if tag.example and ("\n" in tag.example or not tag.example.startswith(f"{tag.prefix}: ")):
        raise DefinitionError(
            f"{tool}, :tag: :example is one line that begins with {tag.prefix}: and a blank."
        )
    return _with_groups(tool, tag, params) if tag.pattern or tag.groups else tag


def _with_groups(tool: str, tag: Tag, params: Sequence[Param]) -> Tag:
    """The tag with its pattern and the parameter of each of its groups, checked."""
    names = [param.name for param in params]
    for name in tag.groups:
        if name not in names:
            raise DefinitionError(
                f"{tool}, :tag: the group {name} is no parameter; the parameters are "
                f"{', '.join(names) or 'none'}.{did_you_mean(name, names)}"
            )
        if tag.groups.count(name) > 1:
            raise DefinitionError(f"{tool}, :tag: the group {name} stands twice.")
    required = [param.name for param in params if param.required]
    groups = tag.groups or tuple((required or names)[:1])
    pattern = tag.pattern or "(.+)"
    try:
        count = compiled(pattern).groups
    except ToolError as error:
        raise DefinitionError(f"{tool}, :tag: {error}") from None
    if count != len(groups):
        raise DefinitionError(
            f"{tool}, :tag: {pattern} has {count} group{'' if count == 1 else 's'} in brackets, and the "
            f"parameters for them are {', '.join(groups) or 'none'}; each group is one parameter. Brackets "
            "that are none begin with (?:."
        )
    for name in required:
        if name not in groups:
            raise DefinitionError(f"{tool}, :tag: the required parameter {name} has no group in {pattern}.")
    return Tag(tag.prefix, pattern, groups, tag.example, tag.strip)
