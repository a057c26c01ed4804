"""The commands ``quoth knowledge``: list, show and forget entries of the folder knowledge/."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from quoth.agent.cli.common import knowledge_of
from quoth.agent.cli.options import DONE, FAILED, Actions, Options, argument, option
from quoth.agent.terminal.output import complain, print_json, print_line, print_table
from quoth.tools.errors import ToolError, UsageError, did_you_mean
from quoth.tools.visible import visible

if TYPE_CHECKING:
    from quoth.tools.knowledge.base import FileKnowledge
    from quoth.tools.knowledge.entries import Stored


KINDS = ("source", "claim", "learning", "note")
NAME = "the name of an entry, its title, or FILE:LINE"


class KnowledgeListOptions(Options):
    of_kind: str | None = option("--kind", "KIND", f"list only this kind: {', '.join(KINDS)}")


class KnowledgeShowOptions(Options):
    name: str = argument("NAME", NAME)


class KnowledgeForgetOptions(Options):
    groups = "asking"
    names: Sequence[str] = argument("NAME", NAME, nargs="+")


def list_entries(options: KnowledgeListOptions) -> int:
    """Print the entries, one per line; the exit code is 1 if a file cannot be read."""
    from quoth.tools.call.service_types import one_of

    if options.of_kind is not None:
        one_of("kind", options.of_kind, KINDS)
    base = knowledge_of(options)
    found = [(path, one) for path, one in base.entries() if options.of_kind in (None, one.kind)]
    if options.json:
        print_json([_listed(path, one) for path, one in found])
    elif not found and not base.faults:
        complain(f"No entry is a {options.of_kind}." if options.of_kind else "There are no entries yet.")
    else:
        print_table([_row(one) for _, one in found])
    return FAILED if base.faults else DONE


def show(options: KnowledgeShowOptions) -> int:
    """Print the text of an entry to stdout, and its kind, place and marks to stderr."""
    path, one = _named(knowledge_of(options), options.name)
    if options.json:
        print_json(_listed(path, one) | {"text": one.text})
        return DONE
    print_line(one.text)
    complain(f"{one.name}: {one.kind}{f', {one.category}' if one.category else ''}, {path}:{one.row + 1}")
    for origin in one.origins:
        marks = {name: value for name, value in asdict(origin).items() if value}
        complain(", ".join(_in_line(f"{name} {value}") for name, value in marks.items()))
    for address in one.addresses:
        complain(_in_line(address))
    return DONE


def forget(options: KnowledgeForgetOptions) -> int:
    """Remove entries from their files after a person confirms it; leave the rest of the files unchanged."""
    from quoth.agent.terminal.ask import confirmed
    from quoth.agent.terminal.input import is_inside

    if is_inside():
        raise UsageError("A program that a tool runs cannot remove entries of the knowledge base.")
    base = knowledge_of(options)
    gone = list(dict.fromkeys(_named(base, name) for name in options.names))
    said = ", ".join(visible(one.name) for _, one in gone)
    if not (options.yes or confirmed(f"Forget {said}?", no_input=options.no_input)):
        complain("Nothing was forgotten.")
        return FAILED
    for path, one in gone:
        try:
            if not base.forget(path, one):
                raise UsageError(
                    f"{path} was changed in the meantime: it no longer contains {one.name} as it was read."
                )
        except ToolError as error:
            raise UsageError(str(error)) from None
    if options.json:
        print_json({"forgotten": [_listed(path, one) for path, one in gone]})
        return DONE
    for path, one in gone:
        print_line(f"Removed {visible(one.name)} from {path}.")
    complain("Earlier conversations and backups of the files may still contain it.")
    return DONE


def _named(base: FileKnowledge, name: str) -> tuple[str, Stored]:
    """The entry with that name, place or title. The UsageError for an unknown one names the nearest; the one
    for a shared title lists the places."""
    every, wanted = base.entries(), " ".join(name.split()).casefold()
    by_name = [one for one in every if name in (one[1].name, f"{one[0]}:{one[1].row + 1}")]
    found = by_name or [one for one in every if " ".join(one[1].title.split()).casefold() == wanted]
    if len(found) == 1:
        return found[0]
    if found:
        places = ", ".join(f"{path}:{one.row + 1}" for path, one in found)
        raise UsageError(
            f"{len(found)} entries have the title {_in_line(name)}. Give the place of one: {places}"
        )
    known = [word for _, one in every for word in (one.name, one.title)]
    near = did_you_mean(name, known) or (" To list them: quoth knowledge list" if every else "")
    none = "" if every else " There are no entries yet."
    raise UsageError(f"Unknown entry {_in_line(name)}.{near}{none}")


def _listed(path: str, one: Stored) -> dict[str, Any]:
    """An entry as JSON data without its text."""
    names = ("name", "kind", "title", "category")
    return {name: getattr(one, name) for name in names} | {
        "path": path,
        "line": one.row + 1,
        "addresses": [*one.addresses],
        "origins": [asdict(origin) for origin in one.origins],
    }


def _row(one: Stored) -> list[str]:
    from quoth.agent.session.render import minute

    at, user = one.origin.at, one.origin.user
    more = f" and {len(one.origins) - 1} more" if len(one.origins) > 1 else ""
    known = [one.name, one.kind, minute(at) if at else "", f"{user}{more}", one.title]
    return [_in_line(cell) for cell in known]


def _in_line(text: str) -> str:
    from quoth.tools.text import short

    return short(visible(" ".join(text.split())), 100)


ACTIONS: Actions = {
    "list": (list_entries, "List the entries."),
    "show": (show, "Show an entry with its text."),
    "forget": (forget, "Remove entries from their files."),
}
