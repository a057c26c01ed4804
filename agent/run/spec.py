"""The definition of a run, in its first event: the task, its user, the model and its dialect. Only this file
writes and reads it.
"""

from __future__ import annotations

import base64
import contextlib
import json
import re
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import Any

from quoth.agent.reply import Output
from quoth.neuro.backends.base import Backend, RequestOptions, takes_images
from quoth.neuro.backends.messages import Image, sendable
from quoth.neuro.prompt.dialects import CALL_FORM, Dialect, dialect_named
from quoth.tools.call.images import MAX_BYTES as IMAGE_BYTES
from quoth.tools.call.images import images_in, media_of
from quoth.tools.call.workspace import Workspace
from quoth.tools.errors import DefinitionError, ToolError, UsageError
from quoth.tools.history.long_results import StorePages, Texts
from quoth.tools.lazy_dataclass import dataclass
from quoth.tools.lisp.printer import print_string
from quoth.tools.registry.json_type import inline, json_type
from quoth.tools.text import short
from quoth.tools.visible import visible

# The output of a run: the type of its answer, the sentence that asks the model for it, and the faults of an
# answer. A run resumed in another process has only the JSON Schema of the type.


MOST_FAULTS = 5  # maximum number of faults in one message
_FENCE = re.compile(r"```[\w-]*[ \t]*\n(.*?)```", re.DOTALL)


@dataclass(frozen=True)
class OutputType:
    """The type of an answer: its JSON ``schema``, and pydantic's ``adapter``, which checks a value."""

    schema: Mapping[str, Any]
    adapter: Any = field(repr=False, compare=False)

    @classmethod
    def of(cls, wanted: Any) -> OutputType:
        """The output type for a pydantic model, a dataclass, a TypedDict or any other type with a JSON
        Schema. Raises UsageError."""
        from pydantic import TypeAdapter
        from pydantic.errors import PydanticUserError

        if typing.get_origin(wanted) is Output:
            (wanted,) = typing.get_args(wanted)
        try:
            adapter = TypeAdapter(wanted)
            return cls(_inline(adapter.json_schema()), adapter)
        except (PydanticUserError, TypeError) as error:
            why = short(str(error).splitlines()[0], 200).rstrip(".")
            raise UsageError(
                f"output is a type with a JSON Schema, such as a pydantic model, not {wanted!r} ({why})."
            ) from None

    @classmethod
    def known_by(cls, schema: Mapping[str, Any]) -> OutputType:
        """The output type of a recorded run: its values are plain data, checked by the schema where that is
        possible."""
        from pydantic import TypeAdapter

        try:
            return cls(schema, TypeAdapter(json_type(dict(schema))))
        except DefinitionError:
            return cls(schema, TypeAdapter(Any))

    @property
    def wish(self) -> str:
        """The sentence that asks the model for this type."""
        return wish_for(self.schema)

    def read(self, text: str) -> tuple[Any, str]:
        """The value in an answer, and a sentence with its faults; empty if it has none."""
        from pydantic import ValidationError

        for said in _candidates(text):
            try:
                json.loads(said)
            except (ValueError, RecursionError):
                continue
            try:
                return self.adapter.validate_json(said), ""
            except ValidationError as error:
                found = error.errors(include_url=False)
                more = "; …" if len(found) > MOST_FAULTS else ""
                faults = "; ".join(map(_fault, found[:MOST_FAULTS]))
                return None, f"Your answer does not fit the schema: {faults}{more}."
        return None, NO_JSON


def wish_for(schema: Mapping[str, Any]) -> str:
    """The sentence that asks a model for an answer by a JSON Schema."""
    text = json.dumps(schema, ensure_ascii=False)
    return f"Give the answer as JSON alone, without other words, by this JSON Schema: {text}"


NO_JSON = "Your answer is not JSON."


def _candidates(text: str) -> Iterator[str]:
    """The possible places of the JSON in an answer: the whole text, a fence, or between words."""
    yield text.strip()
    yield from _FENCE.findall(text)
    for first, last in ("{}", "[]"):
        start, end = text.find(first), text.rfind(last)
        if 0 <= start < end:
            yield text[start : end + 1]


def _fault(detail: Any) -> str:
    place = "".join(f".{part}" if isinstance(part, str) else f"[{part}]" for part in detail["loc"])
    if detail["type"] == "missing":
        return f"{place.lstrip('.')} is missing"
    said = f"{detail['msg'][:1].lower()}{detail['msg'][1:]}"
    given = short(json.dumps(detail["input"], ensure_ascii=False, default=str), 80)
    return f"{place.lstrip('.')}: {said}, not {given}" if place else f"{said}, not {given}"


def _inline(schema: dict[str, Any]) -> dict[str, Any]:
    try:
        return inline(json.loads(json.dumps(schema)))
    except DefinitionError:  # it contains itself
        return schema


# The files of a task, and the images in the results of its calls. The model sees a text as data, and an image
# as an image. Both are kept, because a resumed run must show the same.


MOST_FILES = 20
TEXT_BYTES = 200_000
NAME = 100  # maximum of characters in the name of an image from a call
TaskFile = str | Path | tuple[str, bytes]  # a path, or a name with its content


def attached(given: Iterable[TaskFile], pages: StorePages, workspace: Workspace) -> list[dict[str, str]]:
    """The files as the stimulus of a run records them: the whole of a text, and the stored id of an image.
    Raises UsageError, also for files that no tool of the ``workspace`` may read, inside or outside of it."""
    files = [given] if isinstance(given, str | Path) else list(given)
    if len(files) > MOST_FILES:
        raise UsageError(f"A task takes at most {MOST_FILES} files, not {len(files)}.")
    paths = [Path(file) for file in files if isinstance(file, str | Path)]
    if hidden := next(filter(workspace.is_secret, paths), None):
        raise UsageError(f"{hidden} is a secret of quoth, which no model may see.")
    return [_attached(*_read(file), pages) for file in files]


def _read(given: TaskFile) -> tuple[Path, bytes, int]:
    """The path of a file, its first bytes and its size."""
    match given:
        case (str() | Path() as name, bytes() as data):
            return Path(name), data, len(data)
        case str() | Path():
            path = Path(given)
        case _:
            raise UsageError(f'files are paths, or names with bytes such as ("a.png", data); not {given!r}.')
    if path.exists() and not path.is_file():  # reading a pipe might never end
        raise UsageError(f"{path} is not a file.")
    try:
        with path.open("rb") as file:
            data = file.read(IMAGE_BYTES + 1)
            size = max(len(data), path.stat().st_size)  # special files report 0
    except OSError as error:
        raise UsageError(f"The file {path} cannot be read: {error.strerror}.") from None
    return path, data, size


def _attached(path: Path, data: bytes, size: int, pages: StorePages) -> dict[str, str]:
    if media := media_of(data):
        if len(data) > IMAGE_BYTES:
            raise UsageError(f"The image {path} has {size:,} bytes; the maximum is {IMAGE_BYTES:,}.")
        if not (id := pages.keep(base64.b64encode(data).decode())):
            raise UsageError(f"The image {path} cannot be kept: the store of the workspace is full.")
        return {"name": path.name, "media": media, "id": id}
    try:
        if b"\0" in data:
            raise ValueError
        text = data.decode() if size <= TEXT_BYTES else ""
    except ValueError:
        raise UsageError(
            f"The file {path} is neither text in UTF-8 nor an image (PNG, JPEG, GIF or WebP)."
        ) from None
    if size > TEXT_BYTES:
        raise UsageError(
            f"The file {path} has {size:,} bytes; the maximum of a text in a task is {TEXT_BYTES:,}. "
            "Put it into the workspace: the model can read it there in parts."
        )
    return {"name": path.name, "text": text}


def require_images(backend: Backend, images: Sequence[Mapping[str, Any]]) -> None:
    """Raise UsageError if there are images and the model reads text only."""
    if images and not takes_images(backend):
        name = images[0]["name"]
        raise UsageError(f"{backend.name} reads text only: leave out {name}, or choose another model.")


def images_of(files: Sequence[Mapping[str, Any]], pages: Texts | None) -> tuple[Image, ...]:
    """The images among recorded files; without ``pages`` only their names."""
    return tuple(image_of(one, pages) for one in files if "media" in one)


def image_of(recorded: Mapping[str, Any], pages: Texts | None) -> Image:
    """A recorded image with its data, if that is still stored."""
    image = Image(recorded)
    if isinstance(pages, StorePages):
        with contextlib.suppress(ToolError, ValueError):
            data = pages.text(image["id"])
            if media_of(base64.b64decode(data[:64])) == image["media"]:  # the id may be untrusted text
                image.data = data
    return image


def images_message(values: Iterable[Any], pages: Texts | None) -> list[tuple[str, str, str, list[Image]]]:
    """The message with the images among the values of a model's calls; empty if there are none."""
    found = {one["image"]: one for value in values for one in images_in(value)}
    images = [
        image_of(
            {
                "name": sendable(short(visible(one["name"]), NAME)),  # it may be untrusted text
                "media": one["type"],
                "id": one["image"],
                "size": f"{one['width']}x{one['height']}",
            },
            pages,
        )
        for one in found.values()
    ]
    if not images:
        return []
    names = ", ".join(print_string(image["name"]) for image in images)
    return [("user", f"Shown as a result: {names}", "", images)]


FACTS: dict[str, Callable[[Backend], Any]] = {
    "model": attrgetter("name"),
    "takes-grammar": attrgetter("takes_grammar"),
    "tool-view": attrgetter("tool_view"),
    "context": attrgetter("context"),
    "takes-images": takes_images,
    "roomier": lambda backend: getattr(backend, "roomier", False),
}
_OPTIONAL = ("takes-images", "roomier")  # left out if they do not apply


def facts_of(backend: Backend) -> dict[str, Any]:
    """The facts about a model in a run's stimulus; a RecordedBackend needs them to replace the model."""
    facts = {name: told(backend) for name, told in FACTS.items()}
    return {name: fact for name, fact in facts.items() if fact or name not in _OPTIONAL}


@dataclass(frozen=True)
class RunSpec:
    """The stimulus of a run, exactly as in its event; it never changes."""

    task: str  # the message of the user, or the task of a sub-agent from its caller
    user: str = ""  # the user of the agent
    speaker: str = ""  # the user of the calls, if different
    turn: str = ""  # the name of the message in a conversation; empty for a task on its own
    chat: str = ""  # the chat of the message
    tools: tuple[str, ...] | None = None  # the names of a sub-agent's tools; None: all of the agent's
    hidden: tuple[str, ...] = ()  # tools hidden from its model at its start
    instructions: str = ""  # in the opening of its conversation
    surroundings: str = ""  # after them, as data
    temperature: float | None = None  # the temperature of each request; None: the server's default
    plan: bool = False  # whether it began in plan mode
    news: str = ""  # changes since the last run, shown before the data
    data: str = ""  # shown to the model once, after the task
    files: tuple[Mapping[str, Any], ...] = ()  # texts and images, shown with the task
    output: Mapping[str, Any] | None = None  # the JSON Schema of its answer
    model: Mapping[str, Any] = field(default_factory=dict)  # its facts: see facts_of
    dialect: Dialect = CALL_FORM  # it also says whether the run stops after calls
    search: bool = False  # whether the tool list has one line for each tool
    few: tuple[str, ...] = ()  # the tools in the tool list, if it is short; empty: all
    must_act: bool = False  # whether the model must call a tool before it answers
    limits: Mapping[str, Any] = field(default_factory=dict)  # the RunLimits at its start

    @classmethod
    def read(cls, said: Mapping[str, Any]) -> RunSpec:
        """The spec in the data of a stimulus; also reads those of older versions."""
        dialect = dialect_named(said["dialect"], in_text=said["in-text"])
        told = {name: said[name] for name in _TEXTS if name in said}
        return cls(
            said["text"],
            tools=None if said.get("tools") is None else tuple(said["tools"]),
            hidden=tuple(said.get("hidden", ())),
            files=tuple(said.get("files", ())),
            output=said.get("output"),
            plan=bool(said.get("plan")),
            model={name: said[name] for name in FACTS if name in said},
            dialect=replace(dialect, stops=said.get("after-tags") == "stop"),
            search=said["search"],
            few=tuple(said.get("few", ())),
            must_act=said["must-act"],
            limits=said["limits"],
            **told,
        )

    def written(self) -> dict[str, Any]:
        """The data of its stimulus."""
        optional: dict[str, Any] = {
            "speaker": self.speaker,
            "chat": self.chat,
            "after-tags": "stop" if self.dialect.stops else "",
            "hidden": sorted(self.hidden),
            "few": list(self.few),
            "instructions": self.instructions,
            "surroundings": self.surroundings,
            "plan": self.plan,
            "news": self.news,
            "data": self.data,
            "files": list(self.files),
        }
        said: dict[str, Any] = {"text": self.task, "user": self.user, "turn": self.turn}
        said |= {name: value for name, value in optional.items() if value}
        if self.tools is not None:
            said["tools"] = list(self.tools)
        if self.temperature is not None:
            said["temperature"] = self.temperature
        if self.output is not None:
            said["output"] = dict(self.output)
        return {
            **said,
            **self.model,
            "dialect": self.dialect.name,
            "in-text": not self.dialect.native,
            "search": self.search,
            "must-act": self.must_act,
            "limits": dict(self.limits),
        }

    @cached_property
    def shown(self) -> str:
        """The message with the task and all texts after it."""
        texts = (f"The file {one['name']}:\n{one['text']}" for one in self.files if "text" in one)
        wish = "" if self.output is None else wish_for(self.output)
        return "\n\n".join(filter(None, [self.task, self.news, self.data, *texts, wish]))

    @cached_property
    def request_options(self) -> RequestOptions | None:
        """The options of each request besides the conversation."""
        return None if self.temperature is None else RequestOptions(temperature=self.temperature)


_TEXTS = ("user", "speaker", "turn", "chat", "instructions", "surroundings", "temperature", "news", "data")
