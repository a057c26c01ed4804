"""The commands ``quoth tools`` and ``belt``: list the tools, and print the tool list as a model reads it."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quoth.agent.cli.common import agent_of, tools_of
from quoth.agent.cli.options import DONE, FAILED, REMOTE, WORK, Options, argument, option
from quoth.agent.terminal.output import complain, print_json, print_line, results_only
from quoth.tools.errors import UsageError
from quoth.tools.lazy_dataclass import dataclass
from quoth.tools.loading import load_tools, with_search
from quoth.tools.text import number_of, short

if TYPE_CHECKING:
    from quoth.agent.client import AsyncAgent
    from quoth.tools.registry.table import CognitiveTool, ToolTable


class ToolsOptions(Options):
    groups = WORK
    name: str | None = argument(
        "NAME", "the tool to show, or test: run the examples of FILE (default: list all)", nargs="?"
    )
    file: str | None = argument("FILE", "with test: a file of tools", nargs="?")


class BeltOptions(Options):
    groups = f"tools --model --dialect --belt --policy {REMOTE}"
    view: str = option(
        "--view",
        "VIEW",
        "lisp, plist, json, tags, run, bare, openai, responses, anthropic or mcp (default: lisp, or as"
        " --model, --dialect and --belt choose)",
    )


def tools(options: ToolsOptions) -> int:
    if options.file is not None:
        if options.name != "test":
            raise UsageError(f"quoth tools shows one tool. To test a file: quoth tools test {options.file}")

        return test_tools(options, options.file)
    table = _for_user(options, tools_of(options))
    if options.name == "test" and "test" not in table:
        raise UsageError("Give the file whose examples to run: quoth tools test FILE")
    if options.name or options.json:
        from quoth.tools.registry.roles import roles_data
    if options.name:
        from quoth.agent.terminal.pages import expansions, tool_page

        tool = table.get(options.name)
        if options.json:
            more = {"source": tool.source, "form": tool.form, "expansion": expansions(tool)}
            print_json(tool.describe() | roles_data(tool) | more | {"version": tool.version})
        else:
            print_line(tool_page(tool))
    elif options.json:
        print_json([tool.describe() | roles_data(tool) for tool in table.visible])
    else:
        for line in listed(table.visible):
            print_line(line)
    return DONE


def _for_user(options: Options, table: ToolTable, route: str = "", *, programs: bool = False) -> ToolTable:
    """The table without the tools that the rules always deny to the user, by this route or by every route."""
    from quoth.tools.policy.project import has_rules

    if not (has_rules(options.folder, options.policy) or table.permissions):  # quoth's own rules deny no tool
        return table
    from quoth.tools.policy.files import load_policy
    from quoth.tools.policy.offer import offered, ways

    policy = load_policy(options.folder, options.policy)
    for note in policy.notes:
        complain(note)
    routes = ways(table, policy, options.asker, route, programs=programs) if route else ()
    seen = offered(table, policy, options.asker, routes)
    if hidden := ", ".join(sorted(seen.hidden)):
        complain(f"Not shown, because the rules deny {options.asker} every call of it: {hidden}")
    return seen


def listed(table: ToolTable) -> Iterator[str]:
    """Two lines for each tool: its description and its signature."""
    width = max((len(tool.name) for tool in table), default=0)
    for tool in table:
        first = " ".join(tool.description.split()).split(". ")[0].rstrip(".")
        yield f"{tool.name:<{width}}  {first}."
        yield f"{'':<{width}}  {tool.signature()}"


def belt(options: BeltOptions) -> int:
    from quoth.neuro.prompt.belt import belt as view_of
    from quoth.neuro.prompt.belt import belt_json

    view, more = options.view or "lisp", {}
    if options.model or options.dialect or options.belt:
        if options.view:
            raise UsageError("Give either --view, or --model, --dialect and --belt, which choose a view.")
        view, dialect = _chosen_view(options)
        more = {"dialect": dialect}
    found = tools_of(options)
    if options.belt == "search":
        found = with_search(found)
    table = _for_user(options, found, "reply", programs=view == "run")
    if options.json:
        print_json(belt_json(table, view) | more)
    else:
        print_line(view_of(table, view).rstrip("\n"))
    return DONE


def _chosen_view(options: BeltOptions) -> tuple[str, str]:
    """The view that the model is shown, and its dialect; without a model, those of one with native tools."""
    from quoth.agent.config.loading import load_config
    from quoth.neuro.backends.select import tool_view_of
    from quoth.neuro.prompt.dialects import choose_dialect

    config = load_config(options.folder)
    model = options.model or os.environ.get("QUOTH_MODEL") or config.model or ""
    native, search = tool_view_of(model, config) if model else "openai", options.belt == "search"
    wanted = options.dialect or config.dialect
    known: Any = {"takes_tools": bool(native), "search": search, "configured": config.providers}
    dialect, note = choose_dialect(model, wanted, **known)
    if note:
        complain(note)
    return "bare" if search else dialect.view or native, dialect.name


# ``quoth tools test FILE`` runs the ``:examples`` of a file's tools in a copy of the workspace. A copy only
# contains writes, so examples with other effects run only with --yes.


HELD = {"reads", "writes"}  # the effects that a copy of the workspace makes harmless
LEFT_OUT = shutil.ignore_patterns(".git", ".venv*", "venv", "node_modules", "__pycache__", ".*_cache")
MOST_FILES, MOST_BYTES = 5_000, 200_000_000
SHOWN = 100


@dataclass(frozen=True)
class ExampleOutcome:
    """The result of an example: ``word`` is ``ok``, ``failed`` or ``not run``; ``text`` says why."""

    tool: str
    form: str
    word: str
    text: str
    ms: int = 0


def test_tools(options: Options, file: str) -> int:
    """Run the examples, print their results, and return the exit code: 1 if one failed."""
    import asyncio
    import tempfile

    with results_only():
        shipped = load_tools(options.tools)
        table = load_tools([*options.tools, file])
    tools = [one for one in table if one.name not in shipped or shipped.get(one.name) is not one]
    if not tools:
        raise UsageError(f"{file} does not define a tool.")
    _require_small(options.folder)
    files = tuple(str(Path(one).absolute()) for one in (*options.tools, file))
    with tempfile.TemporaryDirectory(prefix="quoth-tools-") as scratch:
        copy = Path(scratch, options.folder.resolve().name or "workspace")
        shutil.copytree(options.folder, copy, symlinks=True, ignore=LEFT_OUT, copy_function=_copied)
        _keep_links_inside(copy, options.folder.resolve())
        own = replace(
            options,
            workspace=str(copy),
            tools=files,
            policy=options.policy and str(Path(options.policy).absolute()),
            yes=True,
        )
        before, here = _state(options.folder), Path.cwd()
        os.chdir(copy)
        try:
            with results_only():
                outcomes = asyncio.run(_outcomes(own, tools, Path(scratch), options.yes))
        finally:
            os.chdir(here)
        touched = _changes(before, _state(options.folder))
    return _show(options, file, tools, outcomes, touched)


def _require_small(folder: Path) -> None:
    if not folder.is_dir():
        raise UsageError(f"The workspace {folder} is not a folder.")
    number = size = 0
    for number, file in enumerate(_files(folder), 1):
        size += file.lstat().st_size
        if number > MOST_FILES or size > MOST_BYTES:
            raise UsageError(
                f"The examples run in a copy of the workspace, but {folder.resolve()} has more than "
                f"{MOST_FILES:,} files or {MOST_BYTES // 10**6} MB. Choose a smaller one: --workspace DIR"
            )


def _files(folder: Path) -> Iterator[Path]:
    for place, folders, names in os.walk(folder):
        out = LEFT_OUT(place, [*folders, *names])
        folders[:] = [name for name in folders if name not in out]
        yield from (Path(place, name) for name in names if name not in out)


def _copied(source: str, target: str) -> str:
    """Copy a readable regular file; skip others, such as pipes, which examples do not need."""
    if Path(source).is_file() and os.access(source, os.R_OK):
        shutil.copy2(source, target)
    return target


def _keep_links_inside(copy: Path, folder: Path) -> None:
    """Replace links that lead out of the copy, through which a tool would write into ``folder``: by a copy of
    the file if it is in ``folder``, otherwise by nothing."""
    for place, folders, names in os.walk(copy):
        for path in (Path(place, name) for name in [*folders, *names]):
            if path.is_symlink() and not (target := path.resolve()).is_relative_to(copy.resolve()):
                path.unlink()
                if target.is_file() and target.is_relative_to(folder):
                    _copied(str(target), str(path))


def _state(folder: Path) -> dict[str, tuple[int, int]]:
    found = {}
    for file in _files(folder):
        try:
            status = file.lstat()
        except FileNotFoundError:
            continue
        found[str(file.relative_to(folder))] = (status.st_size, status.st_mtime_ns)
    return found


def _changes(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    return sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))


async def _outcomes(
    options: Options, tools: list[CognitiveTool], scratch: Path, yes: bool
) -> list[ExampleOutcome]:
    from quoth.tools.storage.database import Store

    found: list[ExampleOutcome] = []
    async with agent_of(options, store=Store(scratch / "store.sqlite"), channel="test") as agent:
        for tool in tools:
            free = [effect for effect in tool.effects if effect not in HELD]
            for example in tool.examples:
                if free and not yes:
                    does = " and ".join(f":{one}" for one in free)
                    why = f"its effects {does} reach outside the copy; add --yes to run it"
                    found.append(ExampleOutcome(tool.name, str(example), "not run", why))
                else:
                    found.append(await _outcome(agent, tool, example))
    return found


async def _outcome(agent: AsyncAgent, tool: CognitiveTool, example: Any) -> ExampleOutcome:
    from quoth.agent.terminal.forms import failure_text, show_value

    root = agent.workspace.root
    before, began = _state(root), time.monotonic()
    result = await agent.call(example)
    ms = round((time.monotonic() - began) * 1000)
    written = _changes(before, _state(root))
    names = ", ".join(written[:3]) + (" …" if len(written) > 3 else "")
    if not result.ok:
        return ExampleOutcome(tool.name, str(example), "failed", failure_text(result), ms)
    if written and {"writes", "deletes"}.isdisjoint(tool.effects):
        why = f"it wrote {names}, but its :effects do not include :writes"
        return ExampleOutcome(tool.name, str(example), "failed", why, ms)
    text = short(" ".join(show_value(result.value).split()), SHOWN)
    wrote = f"; it wrote {names} in the copy" if written else ""
    return ExampleOutcome(tool.name, str(example), "ok", f"{text}{wrote}", ms)


def _show(
    options: Options,
    file: str,
    tools: list[CognitiveTool],
    outcomes: list[ExampleOutcome],
    touched: list[str],
) -> int:
    from quoth.tools.call.workspace import Workspace
    from quoth.tools.policy.lint import unseen_paths

    failed = [one for one in outcomes if one.word == "failed"]
    if options.json:
        print_json([asdict(one) for one in outcomes])
    else:
        for one in outcomes:
            print_line(f"{one.word:8} {one.form}\n         {one.text}")
        words = [one.word for one in outcomes]
        counts = ", ".join(f"{words.count(word)} {word}" for word in dict.fromkeys(words))
        said = f"{number_of(len(outcomes), 'example')} of {number_of(len(tools), 'tool')}"
        print_line(f"{file}: {said}{counts and ': '}{counts}.")
    workspace = Workspace(options.folder)
    for tool in tools:
        if not tool.examples:
            complain(
                f"{tool.name} has no :examples. Add some: models read them, and this command tests them."
            )
        for sentence in unseen_paths(tool, workspace):
            complain(sentence)
    if touched:
        complain(
            "During the test, files of the workspace itself changed, not of the copy: "
            f"{', '.join(touched[:5])}"
        )
    return FAILED if failed or touched else DONE
