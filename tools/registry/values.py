"""Values that a call may return: plain data that JSON can represent."""

from __future__ import annotations

import base64
import dataclasses
import math
import os
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Any

from quoth.tools.errors import ToolError
from quoth.tools.lisp.printer import FormData, Value
from quoth.tools.text import a_kind


def encodable(text: str) -> str:
    """The text with lone surrogates escaped, so that it can be encoded as UTF-8."""
    if text.isascii():
        return text
    return text.encode("utf-8", "backslashreplace").decode()


def plain(
    value: Value, depth: int = 0, root: Path | None = None, secret: Callable[[Any], Any] | None = None
) -> Any:
    """``value`` as JSON data; a Path below ``root`` becomes relative to it, and pydantic's secrets are passed
    to ``secret``. Raises ToolError for a value that cannot be converted."""
    if depth > 100:
        raise ToolError("The value is nested deeper than 100.")
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, Enum):  # first, because it may also be a text or a number
        return plain(value.value, depth + 1, root, secret)
    if isinstance(value, int):
        if value.bit_length() > 14_000:  # Python prints at most 4300 digits
            raise ToolError("The value is a number of more than 4000 digits; return it in another shape.")
        return int(value)
    if isinstance(value, str):
        return encodable(str(value))
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, FormData):
        return value
    again = partial(plain, depth=depth + 1, root=root, secret=secret)
    if isinstance(value, Mapping):
        return {encodable(_key(key)): again(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [again(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return [again(item) for item in sorted(value, key=repr)]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if hasattr(value, "form_data"):
        return value.form_data()
    if hasattr(value, "model_dump"):
        return again(value.model_dump(by_alias=True))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return again(dataclasses.asdict(value))
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if root is not None and isinstance(value, Path) and value.is_relative_to(root):
        value = value.relative_to(root)
    if isinstance(value, os.PathLike):
        return plain(os.fspath(value))
    if secret is not None and hasattr(value, "get_secret_value"):
        return secret(value)
    if isinstance(value, Iterator):  # it may have no end
        raise NoDataError(value)
    from pydantic_core import to_jsonable_python  # here: most values are data

    try:
        return to_jsonable_python(value)
    except ValueError:
        raise NoDataError(value) from None


def secret_text(secret: Any) -> Any:
    """The value in a pydantic secret, as JSON data."""
    return plain(secret.get_secret_value())


def plain_but_secrets(value: Value) -> Any:
    """``value`` as JSON data, with pydantic's secrets unchanged."""
    return plain(value, secret=lambda secret: secret)


def _key(key: object) -> str:
    return str(plain(key) if isinstance(key, Enum) or hasattr(key, "isoformat") else key)


class NoDataError(ToolError):
    """A value cannot be converted to data; its text is for the sentence about a tool that ``returned`` it."""

    def __init__(self, value: object) -> None:
        self.sentence = (
            f"{a_kind(value)}, which is not data; a tool returns None, True or False, numbers, texts, paths, "
            "dates, lists, sets, dictionaries, dataclasses or pydantic models."
        )
        super().__init__(f"The value is {self.sentence}")


UNKNOWN: Any = object()  # an argument of a planned call: nothing about it can be decided
REST: Any = object()  # the last item of a list: further items may follow, or none; nothing is known of them
