"""What the words of a task ask for, and what the calls of a run have shown of it. The coach of small models
(coach.py) compares the two.

It reads files, numbers and a few English words. A task in another language has only files and numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date
from functools import lru_cache
from itertools import dropwhile, takewhile
from typing import Any, NamedTuple

from quoth.agent.reply import CallRecord
from quoth.agent.run.orders import FIGURES, PATH, POLITE, files_in, orders_in
from quoth.tools.words import STOP_WORDS

_NUMBER = r"(?<![^\W_])\d{1,15}(?!\d)"
_ASKS = r"\b(?:which|what|who|whose|when|where|why|how|is|are|was|were|does|do|did|has|have)\b"
_ARITHMETIC = (
    r"\d\s*[+*^]\s*\d|\d\s+[-/%]\s+\d|\d (?:plus|minus|times|divided|multiplied|to the power)\b|\bsum of\b|"
    r"\bhow many (?:weeks|hours|minutes|years)\b"
)
_DAYS = (
    r"\b(?:how many|number of) days "
    r"(?:after|ago|are|before|between|does|from|is|later|left|lie|passed|remain|since|until)\b|"
    r"\bdays (?:are |is )?(?:between|left)\b"
)
_WEEKDAY = r"\bweekday\b|\b(?:which|what) day (?:is|was|will)\b|\bday of the week\b"
_DATE = r"(?<![\d-])\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])(?![\d-])"
_COMPUTES = (
    rf"\badd (?:\w+ ){{1,3}}?{FIGURES}\b|"
    r"\b(?:sum|total|together|altogether|in all|average|the mean|mean of|difference|differ|product of|"
    r"percent|add up|highest|lowest|largest|smallest|maximum|minimum|by how (?:much|many)|"
    r"how (?:much|many) (?:fewer|less|more)|"
    r"(?:two|three|four|five|six|\d+) \w+ cost)\b"
)


READER = "read-file"


class Asked(NamedTuple):
    """What a task asks for: the ``files`` that it names, whether it certainly ``only_asks``, the existing
    files that it asks to change, the files that it asks to make, and whether it wants a number computed: from
    its own numbers (an expression), or from those in a file."""

    files: tuple[str, ...]
    only_asks: bool
    changed: tuple[str, ...] = ()
    made: tuple[str, ...] = ()
    expression: bool = False
    computes: bool = False
    adds: bool = False  # something at the end of a file
    days: bool = False  # the days between two dates
    weekday: bool = False

    @property
    def changes(self) -> bool:
        return bool(self.changed or self.made)


@lru_cache(16)  # it is asked several times a turn
def asked_by(task: str) -> Asked:
    """What the words of a task ask for."""
    low, files, orders = task.lower(), tuple(files_in(task)), orders_in(task)
    expression = bool(re.search(_ARITHMETIC, low))
    computes = expression or (bool(files) and bool(re.search(_COMPUTES, low)))
    asks = re.search(_ASKS, low) or not re.search(POLITE, low)
    only_asks = not orders.any and "?" in task and bool(asks)
    days, weekday = bool(re.search(_DAYS, low)), bool(re.search(_WEEKDAY, low))
    return Asked(
        files, only_asks, orders.changed, orders.made, expression, computes, orders.adds, days, weekday
    )


def is_file_name(text: str) -> bool:
    """Whether a text looks like the path of a file."""
    return re.fullmatch(PATH, text) is not None


def listed_in(surroundings: str) -> tuple[str, ...]:
    """The files in the message about the place of a run: its first lines with a mark."""
    lines = dropwhile(lambda line: not line.startswith("| "), surroundings.splitlines())
    return tuple(line[2:] for line in takewhile(lambda line: line.startswith("| "), lines))


def found_among(name: str, files: Sequence[str]) -> str:
    """The file of this path, or the only one of this name; empty if there is none."""
    if name in files:
        return name
    same = [file for file in files if file.endswith(f"/{name}")]
    return same[0] if len(same) == 1 else ""


def is_in_vain(call: CallRecord) -> bool:
    """Whether a search has found nothing."""
    return call.result.ok and call.result.value == [] and "pattern" in call.form.args


def has_shown(file: str, calls: Iterable[CallRecord]) -> bool:
    """Whether an ok call has shown something of a file, or has written it."""
    return any(_is_about(file, call) for call in calls if call.result.ok)


def has_read(file: str, calls: Iterable[CallRecord]) -> bool:
    """Whether a file was read, or written, or could not be read."""
    return any(
        file in _given(call)
        if call.form.tool == READER
        else call.result.ok and call.result.side_effects and _is_about(file, call)
        for call in calls
    )


def has_written(file: str, calls: Iterable[CallRecord]) -> bool:
    """Whether an ok call has changed a file."""
    return any(call.result.side_effects and _is_about(file, call) for call in calls if call.result.ok)


def _is_about(file: str, call: CallRecord) -> bool:
    value = call.result.value
    if value in (None, "", [], {}) and not call.result.side_effects:
        return False
    given = _given(call)
    name = rf"(?<![\w./-]){re.escape(file)}(?![\w/-])"
    return file in given or any(file in text and re.search(name, text) for text in _texts([*given, value]))


def _given(call: CallRecord) -> list[Any]:
    """The arguments of a call; the path of a file without a dot before it."""
    given = (*call.form.positional, *call.form.args.values())
    return [one.removeprefix("./") if isinstance(one, str) else one for one in given]


def numbers_shown(task: str, calls: Sequence[CallRecord]) -> set[int]:
    """The numbers in a task, in the results of its calls and in what they have written, and the lengths of
    lists."""
    shown = set(numbers_in(task))
    for call in calls:
        result = call.result
        texts = [result.value, result.message]
        if result.side_effects:
            texts += [*call.form.positional, *call.form.args.values()]
        for text in _texts(texts):
            shown.update(numbers_in(text))
        if isinstance(result.value, list):
            shown.add(len(result.value))
    return shown


def files_touched(calls: Iterable[CallRecord]) -> set[str]:
    """The files that ok calls were about, or have found something in."""
    touched = set[str]()
    for call in calls:
        value = call.result.value
        if call.result.ok and (value not in (None, "", [], {}) or call.result.side_effects):
            touched.update(str(one).removeprefix("./") for one in call.form.args.values())
            touched.update(_hit_files(value))
    return touched


def hit_files(calls: Iterable[CallRecord]) -> list[str]:
    """The files in the hits of searches, in order."""
    return list(
        dict.fromkeys(file for call in calls if call.result.ok for file in _hit_files(call.result.value))
    )


def _hit_files(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        yield from (str(one["path"]) for one in value if isinstance(one, Mapping) and "path" in one)


def words_in(task: str) -> list[str]:
    """The words of a task that mean something, the longest first."""
    words = dict.fromkeys(
        word for word in re.findall(r"[^\W\d_]{4,}", task.lower()) if word not in STOP_WORDS
    )
    return sorted(words, key=len, reverse=True)


def dates_in(texts: Iterable[str]) -> list[str]:
    """The different ISO dates in texts, in order."""
    found = dict.fromkeys(one for text in texts for one in re.findall(_DATE, text))
    return [one for one in found if _is_date(one)]


def _is_date(text: str) -> bool:
    with suppress(ValueError):
        return bool(date.fromisoformat(text))
    return False


def results_in(calls: Iterable[CallRecord]) -> list[str]:
    """The texts of what calls have shown."""
    return [text for call in calls for text in _texts([call.result.value])]


def names_in(task: str) -> list[str]:
    """The names of several words in a task, but not a word that begins a sentence."""
    found = re.findall(r"\b[A-Z][a-z]+(?: [A-Z][a-z]+)+\b", task)
    return [name for name in found if name.split()[0].lower() not in STOP_WORDS]


def quotes_in(text: str) -> Iterator[str]:
    """The short quoted texts in a text, in small letters."""
    for quoted in re.findall(r"[\"“`]([^\"“”`\n]{2,40})[\"”`]", text):
        yield quoted.strip(" .,").lower()


def texts_shown(task: str, calls: Iterable[CallRecord]) -> str:
    """The task, its calls and all that they have shown, in small letters."""
    told = (
        text for call in calls for text in _texts([str(call.form), call.result.value, call.result.message])
    )
    return "\n".join([task, *told]).lower()


def numbers_in(text: str) -> Iterator[int]:
    """The whole numbers of a text, without signs and fractions; 1,649 is one."""
    return map(int, re.findall(_NUMBER, re.sub(r"(?<=\d),(?=\d{3}\b)", "", text)))


def _texts(value: Any) -> Iterator[str]:
    """The texts and numbers in a value, as texts."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for name, item in value.items():
            if name != "line":  # of a hit: its number does not count
                yield from _texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)
    elif value is not None and not isinstance(value, bool):
        yield str(value)
