"""Builds a flight plan from the headlines of a reader: phases, ids, own and inherited properties.

An error becomes a fault with its place.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from quoth.agent.plan.model import (
    BUDGETS,
    INHERITED,
    LOOP,
    MAX_RETRY,
    ON_FAIL,
    OWN,
    PHASES,
    TODO_WORDS,
    Data,
    Form,
    Part,
    Plan,
    PlanFault,
    PlanSection,
    Setting,
    StepBudget,
    phase_of,
)
from quoth.agent.plan.suggestions import OURS, meant_property, meant_word, no_word
from quoth.tools.errors import did_you_mean, nearest
from quoth.tools.lisp.source import Place, SourceText

_LIKE_A_PHASE = re.compile(r"(?:Phase\s+\w+\s*:\s*)?(\w+)\s*(?::|$)", re.IGNORECASE)


def build(
    source: SourceText,
    title: str,
    sections: Sequence[PlanSection],
    settings: Sequence[Setting] = (),
    data: Iterable[Data] = (),
    faults: Iterable[PlanFault] = (),
) -> Plan:
    """Build a plan from its sections. ``settings`` are the properties of the whole file."""
    maker = _Maker(list(faults))
    maker.whole(settings)
    for section in sections:
        maker.section(section)
    maker.end()
    values = {one.name: one for one in reversed(list(data))}
    parts, found, left_out = tuple(maker.parts), tuple(maker.faults), frozenset(maker.left_out)
    return Plan(source, title, parts, found, values, maker.library, left_out)


class _Maker:
    def __init__(self, faults: list[PlanFault]) -> None:
        self.faults = faults
        self.parts: list[Part] = []
        self.library: dict[str, Form] = {}
        self.left_out: set[str] = set()
        self.ids: set[str] = set()
        self.file: dict[str, Setting] = {}
        # The open sections: level, whether left out, their part, their inherited settings, entry.
        self.open: list[tuple[int, bool, Part | None, dict[str, Setting], int]] = []
        self.plain: list[PlanSection] = []  # headlines outside the plan
        self.holding: set[int] = set()  # entries with parts below them

    def fault(self, place: Place, message: str) -> None:
        self.faults.append(PlanFault(place, message))

    def whole(self, settings: Sequence[Setting]) -> None:
        for setting in settings:
            name = setting.name.upper()
            if name in OWN and not name.endswith("ID"):
                what = f"{name} is a property of a single headline; it has no effect for the whole file."
                self.fault(setting.place, what)
        known = self._known(settings, {})
        self.file = {name: setting for name, setting in known.items() if name in INHERITED}

    def section(self, section: PlanSection) -> None:
        while self.open and self.open[-1][0] >= section.level:
            self.open.pop()
        _, skipped, parent, handed, _ = self.open[-1] if self.open else (0, False, None, self.file, 0)
        phase = phase_of(section.title)
        counts = bool(section.todo in TODO_WORDS or phase or parent)
        if skipped or section.skipped or not counts:
            if not skipped:
                self._leave_out(section)
                below = [one for one in section.settings if one.name.upper() in INHERITED]
                handed = self._known(below, handed)
            self.open.append((section.level, skipped or section.skipped, None, handed, section.entry))
            return
        settings = self._known(section.settings, handed)
        part = self._part(section, settings, parent, phase, beside="PARALLEL" in handed)
        self.parts.append(part)
        if parent is not None:
            parent.inside.append(part)
        down = {name: setting for name, setting in settings.items() if name in INHERITED}
        self.holding |= {outer[-1] for outer in self.open}
        self.open.append((section.level, False, part, down, section.entry))

    def _leave_out(self, section: PlanSection) -> None:
        for setting in section.settings:
            if setting.name.upper() in ("ID", "CUSTOM_ID"):
                self.left_out.add(setting.value)
        if section.skipped:
            return
        self.library |= {form.name: form for form in section.forms if form.name}
        self.plain.append(section)

    def end(self) -> None:
        """Add faults for headlines that were probably meant as parts of the plan but are not."""
        forms = [form for part in self.parts for form in part.forms] + [*self.library.values()]
        used = {name for form in forms for name in (form.call, *(var.ref for var in form.vars))}
        for section in self.plain:
            self._plain(section, used, section.entry in self.holding)

    def _plain(self, section: PlanSection, used: set[str], holds_steps: bool) -> None:
        place = section.title_place or section.place
        ours = [one for one in section.settings if one.name.upper() in OURS]
        forms = [form for form in section.forms if form.runs]
        library = any(form.name in used for form in forms if form.name)
        lost = [form for form in forms if not (form.name and library)]
        own = [one for one in ours if one.name.upper() in OWN or not holds_steps]
        prose = "prose" if section.prose else ""
        holds = "forms" if lost or own else "steps" if holds_steps else prose
        step = f"PLAN {section.title}".rstrip()
        if message := meant_word(section.title, holds, _is_late(section)):
            self.fault(place, message)
        elif self._near_phase(section):
            return
        elif lost and not section.level:
            what = "This does not run: it is above all headlines. Put it below one, such as PLAN Say hello."
            self.fault(lost[0].place, what)
        elif lost:
            refers = " and no block refers to it" if lost[0].name else ""
            what = f"This does not run: its headline has no TODO word{refers}. Write {step}."
            self.fault(lost[0].place, what)
        elif own:
            what = f"{own[0].name.upper()} has no effect here: the headline has no TODO word. Write {step}."
            self.fault(own[0].name_place, what)

    def _near_phase(self, section: PlanSection) -> bool:
        like = _LIKE_A_PHASE.match(section.title)
        close = nearest(like[1], PHASES) if like and not phase_of(section.title) else None
        if like and close:
            place = section.title_place or section.place
            self.fault(place, f"There is no phase {like[1]}. Did you mean {close}?")
        return bool(close)

    def _part(
        self,
        section: PlanSection,
        settings: dict[str, Setting],
        parent: Part | None,
        phase: str,
        *,
        beside: bool,
    ) -> Part:
        """The part of a headline. With ``beside`` it is below one with PARALLEL, and waits for no other part
        there unless it has forms."""
        if not phase and parent is None:
            self._near_phase(section)
        if not section.todo and (message := meant_word(section.title, late=_is_late(section))):
            self.fault(section.title_place or section.place, message)
        elif section.todo and section.todo not in TODO_WORDS:
            self.fault(section.place, no_word(section.todo))
        after, tools = settings.get("AFTER"), self._names(settings.get("TOOLS"))
        apart = self._switch("PARALLEL", settings.get("PARALLEL"))
        agents = apart and bool(section.prose) and not any(form.runs for form in section.forms)
        waits = () if beside and apart and not section.forms else None
        return Part(
            id=self._id(section, settings),
            title=section.title,
            phase=phase or (parent.phase if parent else ""),
            place=section.place,
            todo=section.todo,
            prose=section.prose,
            forms=tuple(section.forms),
            tools=(*tools, LOOP) if tools is not None and agents else tools,
            model=_text(settings.get("MODEL")),
            budget=self._budget(settings.get("BUDGET")),
            expect=_text(settings.get("EXPECT")),
            after=waits if after is None else self._names(after) or (),
            retry=self._retry(settings.get("RETRY")),
            on_fail=self._on_fail(settings.get("ON-FAIL")),
            may_fail=self._switch("MAY-FAIL", settings.get("MAY-FAIL")),
            parent=parent,
            is_phase=bool(phase),
            settings=settings,
            entry=section.entry,
        )

    def _known(self, given: Sequence[Setting], handed: Mapping[str, Setting]) -> dict[str, Setting]:
        """The settings by name, overriding inherited ones. As in Org, ``nil`` removes one."""
        found = dict(handed)
        mine: dict[str, Setting] = {}
        for setting in given:
            name = setting.name.upper()
            if name in (*INHERITED, *OWN):
                earlier = mine.get(name)
                if setting.more:
                    base = earlier or found.get(name)
                    value = f"{base.value} {setting.value}".strip() if base else setting.value
                    setting = Setting(name, value, setting.place)
                elif earlier is not None:
                    self.fault(setting.place, f"{name} is given twice at this headline.")
                mine[name] = setting
            elif hint := meant_property(setting.name):
                self.fault(setting.name_place, f"There is no property {setting.name}.{hint}")
        found |= mine
        return {
            name: setting
            for name, setting in found.items()
            if setting.value.lower() != "nil" or name in ("AFTER", "TOOLS")
        }

    def _id(self, section: PlanSection, settings: Mapping[str, Setting]) -> str:
        setting = settings.get("ID") or settings.get("CUSTOM_ID")
        slug = "-".join(re.findall(r"\w+", section.title.lower())) or "step"
        if setting is not None and setting.value:
            slug = setting.value
            if slug in self.ids:
                self.fault(setting.place, f"The id {slug} is used twice; each headline needs its own id.")
            elif re.search(r"[\s,]", slug):
                what = f"The id {slug} contains a space or comma, so :AFTER: cannot name it."
                self.fault(setting.place, what)
        name, number = slug, 1
        while name in self.ids:
            number += 1
            name = f"{slug}-{number}"
        self.ids.add(name)
        return name

    def _names(self, setting: Setting | None) -> tuple[str, ...] | None:
        if setting is None:
            return None
        if setting.value.lower() in ("nil", "none"):
            return ()
        return tuple(dict.fromkeys(setting.value.replace(",", " ").split()))

    def _retry(self, setting: Setting | None) -> int:
        if setting is None:
            return 0
        if not setting.value.isdecimal() or not setting.value.isascii() or int(setting.value[:9]) > MAX_RETRY:
            what = f"RETRY must be a whole number from 0 to {MAX_RETRY}, not {setting.value or 'empty'}."
            self.fault(setting.place, what)
            return 0
        return int(setting.value)

    def _on_fail(self, setting: Setting | None) -> str:
        if setting is None:
            return "stop"
        if setting.value not in ON_FAIL:
            hint = did_you_mean(setting.value, ON_FAIL)
            hint = hint or f" Use {', '.join(ON_FAIL[:-1])} or {ON_FAIL[-1]}."
            self.fault(setting.place, f"ON-FAIL cannot be {setting.value or 'empty'}.{hint}")
            return "stop"
        return setting.value

    def _switch(self, name: str, setting: Setting | None) -> bool:
        if setting is not None and setting.value != "t":
            what = f"{name} must be t, or nil to remove it; it cannot be {setting.value or 'empty'}."
            self.fault(setting.place, what)
        return setting is not None

    def _budget(self, setting: Setting | None) -> StepBudget:
        """``steps=6 tokens=2000 cost=0.10 seconds=60``."""
        if setting is None:
            return StepBudget()
        found: dict[str, Any] = {}
        if not setting.value:
            self.fault(setting.place, "BUDGET is empty; write steps=6 tokens=2000 cost=0.10 seconds=60.")
        for word in re.finditer(r"[^\s,]+", setting.value):
            place = Place(setting.place.source, setting.place.line, setting.place.column + word.start())
            name, sign, text = word[0].partition("=")
            if not sign and name not in BUDGETS:
                what = f"BUDGET needs names with numbers, such as steps=6 seconds=60, not {word[0]}."
                self.fault(place, what)
                break
            if name not in BUDGETS:
                self.fault(place, f"BUDGET has no {name}.{did_you_mean(name, BUDGETS, 'It has')}")
            elif name in found:
                self.fault(place, f"BUDGET has {name} twice.")
            elif name == "cost" and re.fullmatch(r"\d{1,9}(\.\d{1,9})?", text) and float(text) > 0:
                found[name] = float(text)
            elif name != "cost" and re.fullmatch(r"[0-9]{1,12}", text) and int(text) > 0:
                found[name] = int(text)
            else:
                kind = "number" if name == "cost" else "whole number"
                shown = text if sign and text else "nothing"
                self.fault(place, f"BUDGET needs a {kind} above 0 for {name}, not {shown}.")
        return StepBudget(**found)


def _is_late(section: PlanSection) -> bool:
    """Whether there is text between the stars and the title."""
    return section.title_place is not None and section.title_place.column > section.place.column


def _text(setting: Setting | None) -> str:
    return setting.value if setting is not None else ""
