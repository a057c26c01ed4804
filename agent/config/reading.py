"""The language of ``config.hy``: its text becomes a Config. The forms are data; nothing is evaluated.

An error message never shows a possible secret of its line.

The forms: ``(model "openai:gpt-5-mini")``, ``(dialect "native")``, ``(temperature 0.2)``, ``(timeout 300)``,
``(instructions "…")``, ``(max-reply-tokens 2000)``; for each run
``(budget :tokens n :cost x :seconds n :steps n :calls n)``, for each day
``(budget :per "day" :user "ann" :requests n :tokens n :cost x)``;
``(gate-command ["gate.py" "--strict"])``, ``(review "local" :may-allow (effects :writes))``,
``(after "*.py" ["ruff" "format" file])``;
``(mcp ["~/servers.json"])``, files that list MCP servers; ``(mcp-sampling True)``, these may ask the model;
``(shell :readable ["~/.m2"] :writable ["/data"] :variables ["JAVA_HOME"] :memory 4 :processes 512)``, what
programs of the tool shell may use besides the workspace; and
``(provider "work" :like "openai" :url "https://…" :key "WORK_API_KEY")``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import hy.models as m

from quoth.agent.config.config import Config
from quoth.agent.settings import ROWS
from quoth.neuro.backends.providers import PROVIDERS, Provider, names
from quoth.tools.errors import UsageError
from quoth.tools.lisp.fields import Fields, keywords, read_forms
from quoth.tools.lisp.printer import show
from quoth.tools.lisp.source import SourceText
from quoth.tools.policy.spending import DailyBudget
from quoth.tools.registry.tool import EFFECTS
from quoth.tools.storage.addresses import web_address
from quoth.tools.text import short

if TYPE_CHECKING:
    from quoth.tools.shell.after import AfterWrite

LONGEST = 500  # maximum characters of an error message
FILES = ("scripted", "local")  # providers whose models may be files
# Possible secrets in a shown line: a user in an address, a query, a word after "key" or one like a key. The
# expression reads each word once, even a long one.
_SECRETS = re.compile(
    r"(?<![^\s/\"@])[^\s/\"@]++(?=@)|(?<=\?)[^\s\"]+|(?<=key )[^\s()]+|(?<![\w-])sk-[\w-]+"
    r"|(?<![\w-])(?=[\w-]*\d)(?=[\w-]*[A-Za-z])[\w-]{20,}"
)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NAME = re.compile(r"[a-z][a-z0-9-]*")


def read_config(text: str, name: str, *, own: bool = True) -> Config:
    """The settings in the file ``name``. A workspace's file (not ``own``) may not name providers, programs or
    files. Raises UsageError with file, line, column and a caret."""
    source = shown_source(name, text)
    return read_settings(read_forms(text, source), source, own=own)


def shown_source(name: str, text: str) -> SourceText:
    """The text of a file as errors quote it: without possible secrets."""
    return SourceText(name, _SECRETS.sub(lambda found: "*" * len(found[0]), text))


def read_settings(
    forms: Sequence[Any],
    source: SourceText,
    *,
    own: bool = True,
    providers: Mapping[str, Provider] = MappingProxyType({}),
) -> Config:
    """The settings in these forms of a file, where these ``providers`` are known. Raises UsageError."""
    return _Reader(source, own).read(forms, providers)


class _Reader(Fields):
    def __init__(self, source: SourceText, own: bool) -> None:
        super().__init__(source)
        self.own = own

    def fault(self, node: Any, message: str) -> UsageError:
        return super().fault(node, short(_SECRETS.sub("***", message), LONGEST))

    def read(self, forms: Sequence[Any], known: Mapping[str, Provider]) -> Config:
        said: dict[str, Any] = {}
        named: list[Any] = []  # models whose providers may be defined further down
        daily: list[DailyBudget] = []
        after: list[AfterWrite] = []
        providers: dict[str, Provider] = {}
        for form in forms:
            head = self.head(form, HEADS, "setting", '(model "openai:gpt-5-mini")')
            if head == "provider":
                provider = self.provider(form, providers)
                providers[provider.name] = provider
                continue
            if head == "after":
                after.append(self.after(form))
                continue
            if head == "budget":
                budget = self.budget(form)
                if isinstance(budget, DailyBudget):
                    daily.append(budget)
                    continue
                value: Any = budget
            elif head in ("shell", "review"):
                value = self.shell(form) if head == "shell" else self.review(form)
            else:
                value = VALUES[head](self, self.one(form, head))
            if (name := NAMES.get(head, head)) in said:
                raise self.fault(form, f"({head} …) is given twice.")
            said[name] = value
            if head in ("model", "review") and self.own:
                named.append(form[1])
        for model in named:
            self.known(model, {**known, **providers})
        return Config(**said, daily=tuple(daily), after=tuple(after), providers=providers)

    def one(self, form: Any, head: str) -> Any:
        if len(form) != 2:
            raise self.fault(form, f"({head} …) takes one value.")
        return form[1]

    # Values

    def text(self, node: Any, what: str = "") -> str:
        found = super().text(node, what)
        if not found.strip():
            raise self.fault(node, f"Expected a text in quotes, not {show(node)}.")
        return found

    def number(self, node: Any) -> float:
        if not isinstance(node, (m.Integer, m.Float)) or not 0 <= node < 1e15:
            raise self.fault(node, f"Expected a number, 0 or more, not {show(node)}.")
        return float(node)

    def seconds(self, node: Any, what: str = "seconds") -> float:
        if not isinstance(node, (m.Integer, m.Float)) or not 0 < node < 1e15:
            raise self.fault(node, f"Expected a number of {what} above 0, not {show(node)}.")
        return float(node)

    def temperature(self, node: Any) -> float:
        if not isinstance(node, (m.Integer, m.Float)) or not 0 <= node <= 2:
            raise self.fault(node, f"Expected a number from 0 to 2, not {show(node)}.")
        return float(node)

    def whole(self, node: Any) -> int:
        if not isinstance(node, m.Integer) or not 1 <= node < 10**15:
            raise self.fault(node, f"Expected a whole number, 1 or more, not {show(node)}.")
        return int(node)

    def dialect(self, node: Any) -> str:
        from quoth.neuro.prompt.dialects import named_dialect  # imported here: few files set a dialect

        name = self.text(node)
        try:
            return named_dialect(name).name
        except UsageError as error:
            raise self.fault(node, str(error)) from None

    def model(self, node: Any) -> str:
        spec = self.text(node)
        for one in spec.removeprefix("cascade:").split(","):
            kind, _, file = one.strip().partition(":")
            if not self.own and kind in FILES and file:
                raise self.fault(node, "A workspace may name a model of a provider, but not a file.")
        return spec

    def known(self, node: Any, providers: Mapping[str, Provider]) -> None:
        """Refuse a model of an unknown provider."""
        for one in str(node).removeprefix("cascade:").split(","):
            kind = one.partition(":")[0].strip()
            if kind not in (there := names(providers)):
                raise self.unknown(node, f"There is no provider {kind}", kind, there)

    def gate_command(self, node: Any) -> tuple[str, ...]:
        such = 'A gate is a program with its arguments: ["/home/ann/gate.py" "--strict"].'
        return tuple(self.text(word) for word in self.argv(node, such))

    def argv(self, node: Any, such: str) -> m.List:
        """The argument vector of a program; a workspace may not name programs."""
        if not self.own:
            raise self.fault(node, "A workspace may not name a program.")
        if not isinstance(node, m.List) or not node:
            raise self.fault(node, such)
        if "/" in (first := self.text(node[0])) and first[0] not in "/~":
            raise self.fault(node[0], "Give the program's full path, or the name of a program on PATH.")
        return node

    def after(self, form: Any) -> AfterWrite:
        from quoth.tools.shell.after import AfterWrite  # imported here: few users have such programs

        such = 'An example of a program to run after a write: (after "*.py" ["ruff" "format" file])'
        if len(form) < 3:
            raise self.fault(form, such)
        pattern, argv = self.text(form[1]), self.argv(form[2], such)
        words = [None if word == m.Symbol("file") else self.text(word) for word in argv]
        more = {key: OF_AFTER[key](self, value) for key, value in self.pairs(form, OF_AFTER, 3)}
        return AfterWrite(pattern, (os.path.expanduser(str(words[0])), *words[1:]), **more)  # noqa: PTH111

    def shell(self, form: Any) -> dict[str, Any]:
        if not self.own:
            raise self.fault(form, "A workspace may not open other parts of this machine to programs.")
        return {key: OF_SHELL[key](self, value) for key, value in self.pairs(form, OF_SHELL)}

    def review(self, form: Any) -> str:
        """The model that looks at calls before the person is asked, and the effects that it may allow."""
        if not self.own:
            raise self.fault(form, "A workspace may not choose the model that reviews calls.")
        such = '(review "local" :may-allow (effects :reads :writes))'
        if len(form) not in (2, 4):
            raise self.fault(form, f"This needs a model, as in {such}.")
        spec = self.model(form[1])
        if len(form) == 2:
            return spec
        effects = form[3]
        named = isinstance(effects, m.Expression) and effects[:1] == m.Expression([m.Symbol("effects")])
        if form[2] != m.Keyword("may-allow") or not named or len(effects) < 2:
            raise self.fault(form[2], f"Name the effects that the reviewer may allow, as in {such}.")
        words = [self.word(node, EFFECTS, "(effects …)") for node in effects[1:]]
        return f"{spec} :may-allow {' '.join(f':{word}' for word in words)}"

    def texts(self, node: Any) -> list[str]:
        if not isinstance(node, m.List):
            raise self.fault(node, f'Expected a list of texts, such as ["~/.m2"], not {show(node)}.')
        return [self.text(item) for item in node]

    def files(self, node: Any) -> tuple[str, ...]:
        if not self.own:
            raise self.fault(node, "A workspace lists its MCP servers in its own .mcp.json.")
        return tuple(map(str, self.places(node)))

    def places(self, node: Any) -> tuple[Path, ...]:
        found = []
        for item, text in zip(node, self.texts(node), strict=True):
            place = Path(os.path.expanduser(text))  # noqa: PTH111  the user of "~x" may not exist
            if not place.is_absolute():
                raise self.fault(item, f"A path here begins with / or ~/, unlike {show(item)}.")
            found.append(place)
        return tuple(found)

    def variables(self, node: Any) -> tuple[str, ...]:
        for item, text in zip(node, self.texts(node), strict=True):
            if not _VARIABLE.fullmatch(text):
                raise self.fault(item, "Give the name of a variable, such as JAVA_HOME, without a value.")
        return tuple(self.texts(node))

    def gigabytes(self, node: Any) -> int:
        return int(self.seconds(node, "gigabytes") * (1 << 30))

    def truth(self, node: Any) -> bool:
        if node not in (m.Symbol("True"), m.Symbol("False")):
            raise self.fault(node, f"Expected True or False, not {show(node)}.")
        return bool(node == m.Symbol("True"))

    def sampling(self, node: Any) -> bool:
        if not self.own:
            raise self.fault(node, "A workspace may not let MCP servers ask your model.")
        return self.truth(node)

    def budget(self, form: Any) -> dict[str, float] | DailyBudget:
        a_day = any(isinstance(item, m.Keyword) and item.name in ("per", "user") for item in form)
        known = OF_DAY if a_day else OF_RUN
        found = {name: known[name](self, value) for name, value in self.pairs(form, known)}
        bounds = {name: value for name, value in known.items() if name not in ("per", "user")}
        if not found.keys() & bounds:
            raise self.fault(form, f"This budget has no limit. Use {keywords(bounds)}.")
        if a_day and not found.pop("per", None):
            raise self.fault(form, 'The budget of a user is per day. Add :per "day".')
        return DailyBudget(**found) if a_day else found

    def per(self, node: Any) -> str:
        if self.text(node) != "day":
            raise self.fault(node, 'A budget is :per "day"; without :per it limits each run.')
        return "day"

    def provider(self, form: Any, before: Mapping[str, Provider]) -> Provider:
        if not self.own:
            raise self.fault(form[0], "A workspace may not name providers, their keys or their addresses.")
        if len(form) < 2:
            raise self.fault(
                form, 'A provider needs a name: (provider "work" :like "openai" :url "https://…").'
            )
        name = self.text(form[1])
        if not _NAME.fullmatch(name):
            raise self.fault(form[1], "The name of a provider consists of a-z, 0-9 and -.")
        if name in PROVIDERS or name in before:
            raise self.fault(form[1], f"The provider {name} already exists.")
        said = {key: OF_PROVIDER[key](self, value) for key, value in self.pairs(form, OF_PROVIDER, 2)}
        if "like" not in said:
            raise self.fault(form, f"Say which API the server has: :like {' or '.join(map(_quoted, LIKE))}.")
        like = PROVIDERS[said["like"]]
        elsewhere = "url" in said
        return replace(
            like,
            name=name,
            help=f"as {like.name}, configured",
            example=f"{name}:{like.example.partition(':')[2]}",
            url=said.get("url", like.url),
            key=said.get("key", "" if elsewhere else like.key),
            needs_key="key" in said or (like.needs_key and not elsewhere),
        )

    def like(self, node: Any) -> str:
        name = self.text(node)
        if name not in LIKE:
            raise self.unknown(node, f"There is no API {name}", name, LIKE)
        return name

    def url(self, node: Any) -> str:
        url = self.text(node)
        if web_address(url) is None:
            raise self.fault(node, "Expected an address such as https://models.example.org/v1.")
        return url

    def variable(self, node: Any) -> str:
        found = self.text(node)
        if not _VARIABLE.fullmatch(found) or found != found.upper():
            what = ":key is the name of an environment variable, such as WORK_API_KEY; the key itself does"
            at = f"{self.source.name}:{node.start_line}:{node.start_column}"
            raise UsageError(f"{at}: {what} not belong here.")  # without showing the line
        return found


def _quoted(word: str) -> str:
    return f'"{word}"'


Value = Callable[[_Reader, Any], Any]
NAMES = {row.form: name for name, row in ROWS.items() if row.form and " " not in row.form}
VALUES: dict[str, Value] = {form: getattr(_Reader, ROWS[name].check or form) for form, name in NAMES.items()}
HEADS = (*VALUES, "after", "budget", "provider", "shell")
OF_SHELL: dict[str, Value] = {
    "readable": _Reader.places,
    "writable": _Reader.places,
    "variables": _Reader.variables,
    "memory": _Reader.gigabytes,
    "processes": _Reader.whole,
}
OF_RUN: dict[str, Value] = {
    row.form.partition(":")[2]: getattr(_Reader, row.check)
    for row in ROWS.values()
    if row.form.startswith("budget :")
}
OF_DAY: dict[str, Value] = {
    "per": _Reader.per,
    "user": _Reader.text,
    "requests": _Reader.whole,
    "tokens": _Reader.whole,
    "cost": _Reader.number,
}
OF_PROVIDER: dict[str, Value] = {
    "like": _Reader.like,
    "url": _Reader.url,
    "key": _Reader.variable,
}
OF_AFTER: dict[str, Value] = {"confined": _Reader.truth}
LIKE = [row.name for row in PROVIDERS.values() if row.backend is not None]
