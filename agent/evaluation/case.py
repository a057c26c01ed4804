"""A case of an evaluation: an Org file that a person reads and edits, with its baselines.

Messages of the person and texts of files are example blocks, EXPECT forms and recorded calls are source
blocks, a baseline is a headline with properties. Other text is for people. Runs nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from quoth.agent.evaluation.figures import Score
from quoth.agent.plan.model import ORGS, Form
from quoth.agent.terminal.input import read_file
from quoth.tools.errors import QuothError, UsageError, no_such
from quoth.tools.lisp.forms import CallForm, canonical, from_model
from quoth.tools.lisp.printer import print_string
from quoth.tools.lisp.reader import ReadError, read_all, read_one
from quoth.tools.lisp.source import Place, SourceText
from quoth.tools.org.document import Element, Org, dump, load
from quoth.tools.org.edit import add_lines, dedent, escape, example, set_property, text_of_example, unescape
from quoth.tools.program.compiler import PROGRAM_LIMITS
from quoth.tools.storage.atomic import replace_file

FOLDER = "evaluations"
Mode = Literal["live", "recorded", "dry"]
MODES: tuple[Mode, ...] = get_args(Mode)
SECONDS = 300.0  # of one run of a case
MESSAGES, EXPECT, BEFORE, AFTER, RECORD = "Messages", "Expect", "Files", "Files after", "Record"
SECTIONS = (MESSAGES, EXPECT, BEFORE, AFTER, RECORD)
BASELINE, PASSED, RECORDED = "Baseline ", "PASSED", "RECORDED"
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
PROPERTIES = {"MODE": "mode", "SECONDS": "seconds", "FROM": "session"}  # SESSION is a word of Org Babel


@dataclass(frozen=True)
class RecordedCall:
    """A call whose body ran in the session, and its result."""

    form: CallForm
    status: str
    value: Any = None
    message: str = ""

    @property
    def text(self) -> str:
        """Both forms, as the file has them."""
        said: dict[str, Any] = {"status": self.status}
        said |= {"value": self.value} if self.status == "ok" else {}
        said |= {"message": self.message} if self.message else {}
        return f"{canonical(self.form)}\n{canonical(CallForm('receipt', said))}"


@dataclass(frozen=True)
class Case:
    """A case. ``files`` are the texts of files before the first message and ``after`` those expected after
    the last, by path; None is a file that must not exist. ``baselines`` are the scores of earlier versions,
    by model and mode."""

    name: str
    messages: Sequence[str]
    expect: Sequence[Form] = ()
    files: Mapping[str, str | None] = field(default_factory=dict)
    after: Mapping[str, str | None] = field(default_factory=dict)
    record: Sequence[RecordedCall] = ()
    baselines: Mapping[str, Score] = field(default_factory=dict)
    mode: Mode = "live"
    seconds: float = SECONDS
    session: str = ""


def baseline_key(model: str, mode: str) -> str:
    return f"{model}, {mode}"


def case_text(case: Case) -> str:
    """The case as an Org file, without baselines."""
    lines = [":PROPERTIES:", f":MODE: {case.mode}", f":SECONDS: {case.seconds:g}"]
    lines += [f":FROM: {case.session}", ":END:", f"#+TITLE: {case.name}", "", f"* {MESSAGES}"]
    for message in case.messages:
        lines += [*example(message), ""]
    lines += [f"* {EXPECT}", *(line for form in case.expect for line in _source(form.text))]
    for title, files in ((BEFORE, case.files), (AFTER, case.after)):
        lines += [f"* {title}"] if files else []
        for path, text in files.items():
            lines += [
                f"** {_title(path)}",
                *([] if text is None else [*example(text.removesuffix("\n")), ""]),
            ]
    lines += [f"* {RECORD}"] if case.record else []
    return "\n".join([*lines, *(line for call in case.record for line in _source(call.text))])


def _title(path: str) -> str:
    """A path as a headline; a string if Org reads a part of the path as a keyword, tag or comment."""
    org = load(f"** {path}\n".encode())
    plain = [one.title for one in org.entries[1:]] == [path] and not org.is_dead(1) and path[0] != '"'
    return path if plain else print_string(path)


def _source(text: str) -> list[str]:
    return ["#+begin_src hy", *escape(text).split("\n"), "#+end_src", ""]


def read_case(path: Path) -> Case:
    """The case in a file. Raises UsageError with the place of the first fault."""
    return _CaseReader(path.stem, str(path), load(read_file(path).encode())).case()


class _CaseReader:
    def __init__(self, name: str, path: str, org: Org) -> None:
        self.name, self.org, self.source = name, org, SourceText(path, org.text)
        self.baselines: dict[str, Score] = {}
        self.inside: dict[str, list[int]] = {title: [] for title in SECTIONS}

    def case(self) -> Case:
        section = ""
        for index, entry in enumerate(self.org.entries[1:], 1):
            if self.org.is_dead(index):
                continue
            section = entry.title if entry.level == 1 else section
            if section.startswith(BASELINE):
                self.baselines |= self._baseline(index) if entry.level == 1 else {}
            elif section in self.inside:
                self.inside[section].append(index)
            else:
                raise self.fault(entry.row, no_such("section", section, SECTIONS, "The sections are"))
        case = Case(
            self.name,
            [text_of_example(self.org, one) for one in self._blocks(MESSAGES, "EXAMPLE")],
            [self._form(one) for one in self._blocks(EXPECT, "SRC")],
            dict(self._files(BEFORE)),
            dict(self._files(AFTER)),
            [self._call(one) for one in self._blocks(RECORD, "SRC")],
            self.baselines,
            **self._properties(),
        )
        for what, title in ((case.messages, MESSAGES), (case.expect or case.after, EXPECT)):
            if not what:
                raise UsageError(f'{self.source.name} has no block below "* {title}".')
        return case

    def fault(self, row: int, message: str) -> UsageError:
        return UsageError(Place(self.source, row + 1, 1).complaint(message))

    def _properties(self) -> dict[str, Any]:
        said: dict[str, Any] = {}
        for one in self.org.entries[0].properties:
            name, value = one.name.upper(), one.value.strip()
            if name == "MODE" and value not in MODES:
                raise self.fault(one.row, no_such("mode", value, MODES, "The modes are"))
            if name == "SECONDS" and not re.fullmatch(r"0*[1-9]\d{0,5}(\.\d+)?", value):
                raise self.fault(one.row, f"SECONDS is a number from 1, not {value}.")
            if name in PROPERTIES:
                said[PROPERTIES[name]] = float(value) if name == "SECONDS" else value
            elif name not in {*ORGS, "ID"}:
                raise self.fault(one.row, no_such("property", one.name, PROPERTIES, "The properties are"))
        return said

    def _blocks(self, section: str, name: str) -> Iterator[Element]:
        for index in self.inside[section]:
            yield from self._blocks_of(index, name)

    def _blocks_of(self, index: int, name: str) -> Iterator[Element]:
        found = self.org.entries[index].elements
        return (one for one in found if one.kind == "block" and one.name == name and not one.depth)

    def _form(self, block: Element) -> Form:
        rows = range(block.first + 1, block.last)
        lines, cut = dedent([self.org.lines[row] for row in rows])
        places = tuple((row, cut) for row in rows) or ((block.first, 0),)
        row, column = places[0]
        return Form(unescape("\n".join(lines)), Place(self.source, row + 1, column + 1), places)

    def _files(self, section: str) -> Iterator[tuple[str, str | None]]:
        for index in self.inside[section]:
            if self.org.entries[index].level > 1:
                texts = [text_of_example(self.org, one) for one in self._blocks_of(index, "EXAMPLE")]
                title = self.org.entries[index].title
                path = str(read_one(title)) if _QUOTED.fullmatch(title) else title
                yield path, texts[0] and f"{texts[0]}\n" if texts else None

    def _call(self, block: Element) -> RecordedCall:
        try:
            call, said = map(from_model, read_all(self._form(block).text, PROGRAM_LIMITS))
        except (ReadError, QuothError, ValueError) as error:
            why = f"A recorded call is two forms, the call and its (receipt :status …). {error}"
            raise self.fault(block.first, why) from None
        status, message = (str(said.args.get(name, "")) for name in ("status", "message"))
        return RecordedCall(call, status or "ok", said.args.get("value"), message)

    def _baseline(self, index: int) -> dict[str, Score]:
        entry = self.org.entries[index]
        said = next((one.value for one in entry.properties if one.name.upper() == PASSED), "")
        numbers = re.fullmatch(r"(\d{1,6}) of (\d{1,6})", said.strip())
        if numbers is None or int(numbers[1]) > int(numbers[2]):
            raise self.fault(entry.row, f"A baseline has the property {PASSED}, such as 9 of 10.")
        return {entry.title.removeprefix(BASELINE): Score(int(numbers[1]), int(numbers[2]))}


def record_baseline(path: Path, key: str, score: Score, date: str) -> None:
    """Record the score of a model and mode in the file of a case; nothing else in it changes. Raises
    UsageError."""
    org, title = load(path.read_bytes()), f"{BASELINE}{key}"
    if not any(entry.title == title for entry in org.entries):
        org = add_lines(org, ["", f"* {title}"])
    index = next(place for place, entry in enumerate(org.entries) if entry.title == title)
    org = set_property(set_property(org, index, PASSED, str(score)), index, RECORDED, date)
    try:
        replace_file(path, [dump(org)])
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}.") from None


def find_cases(folder: Path, names: Sequence[str]) -> list[Path]:
    """The files of the named cases, or of all; a name may also be a path. Raises UsageError."""
    place = folder / FOLDER
    known = {path.stem: path for path in sorted(place.glob("*.org"))}
    if not names and not known:
        raise UsageError(f"There is no case in {place}. To add one: quoth test add SESSION --expect FORM")
    found = list(dict.fromkeys(known.get(name) or Path(name) for name in names or known))
    for path in found:
        if path.suffix != ".org" or not path.is_file():
            raise UsageError(no_such("case", str(path), known, "The cases are", f" in {place}"))
        if both := [str(other) for other in found if other.stem == path.stem and other != path]:
            raise UsageError(f"The cases {path} and {both[0]} have the same name. Rename one of the files.")
    return found
