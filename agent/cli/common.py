"""Helpers for all commands: open the store and the agent, show results, read and write files.

Knows no single command; the commands import it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quoth.agent.cli.options import (
    DONE,
    EXIT_OF_RUN,
    FAILED,
    INTERRUPTED,
    PENDING,
    USAGE,
    Options,
    StreamOptions,
)
from quoth.agent.settings import filled
from quoth.agent.terminal.input import (
    can_be_asked,
    is_inside,
    read_file,
    read_stdin,
    require_person,
)
from quoth.agent.terminal.output import (
    OutputError,
    complain,
    print_data,
    print_json,
    print_line,
    results_only,
    tell_next,
)
from quoth.tools.errors import UsageError
from quoth.tools.policy.project import below, find_project
from quoth.tools.storage.paths import is_missing, real_path, store_path, worktrees_dir

if TYPE_CHECKING:
    from quoth.agent.client import AsyncAgent
    from quoth.agent.events import AgentEvent
    from quoth.agent.reply import Reply
    from quoth.agent.run.options import PolicyOptions, Settings, ToolOptions
    from quoth.agent.session.index import Having
    from quoth.agent.terminal.speech import Speech
    from quoth.tools.call.call import ToolResult
    from quoth.tools.call.services import WebSearch
    from quoth.tools.knowledge.base import FileKnowledge
    from quoth.tools.policy.model import EffectsOf
    from quoth.tools.registry.table import ToolTable
    from quoth.tools.storage.database import Store


EXIT_OF = {"ok": DONE, "invalid": USAGE, "unknown": USAGE, "pending": PENDING, "cancelled": INTERRUPTED}


def interrupted(as_json: bool) -> int:
    """Say that the command was interrupted, and return the exit code."""
    if as_json:
        print_json({"status": "interrupted", "message": "Interrupted."})
    complain("Interrupted.")
    return INTERRUPTED


# The store and the agent


@contextmanager
def open_store(options: Options, *, lists: bool = False) -> Iterator[Store | None]:
    """Open the store of the workspace, or None if it has none. A command does this once. One that ``lists``
    shows damaged texts, too, and names them at its end."""
    from quoth.tools.storage.database import existing_store

    with existing_store(options.folder) as store:
        if store is not None and lists:
            store.lenient = True
        try:
            yield store
        finally:
            for text in store.damaged if store is not None else ():
                complain(f"The store has a damaged text, which is not UTF-8: {text}.")


def named_or_latest(options: Options, store: Store | None, wanted: str | None, having: Having) -> str:
    """The session that is named; else the user's latest with this, which is printed on stderr. Raises
    UsageError."""
    from quoth.agent.session.index import find_session, latest_session, taken

    if wanted:
        return find_session(store, wanted)
    session = latest_session(store, options.asker, having)
    complain(taken(session, options.asker, having))
    return session


def agent_of(
    options: Options,
    *,
    store: Store | None = None,
    asked: Callable[[Any], Any] = lambda person: person,
    channel: str = "",
    **more: Any,
) -> AsyncAgent:
    """Create an agent from the options. It takes over the ``store`` and closes it. ``asked`` may wrap the
    AskTerminal, ``channel`` says where the user is met (by default terminal or json), and ``more`` goes to
    AsyncAgent."""
    from quoth.agent.client import AsyncAgent

    options.project.require_rules()
    consent: Any = None
    if options.yes:
        require_person()
        consent = "yes"
    if can_be_asked(options.no_input):
        from quoth.agent.terminal.ask import AskTerminal, SaysYes

        person = SaysYes if options.yes else AskTerminal
        consent = asked(person(user=options.asker, workspace=options.folder))
    who = {"user": options.user, "session": options.session, "consent": consent}
    agent = AsyncAgent(workspace=options.folder, **{**vars(settings_of(options, channel)), **who, **more})
    agent.deliver = None if options.json else print_data
    if store is not None and not store.read_only:
        agent.host.use_store(store)
    return agent


def settings_of(options: Options, channel: str = "") -> Settings:
    """The settings of an agent that ``options`` give; for ``channel`` see agent_of. Raises UsageError."""
    from quoth.agent.run.channels import VARIABLE, HostServices, channels_of
    from quoth.agent.run.limits import RunLimits
    from quoth.agent.run.options import ModelOptions, Settings
    from quoth.tools.call.services import NO_KNOWLEDGE

    given = {**vars(options), "instructions": _instructions(options.instructions)}
    return Settings(
        model=ModelOptions(**filled(given, "model")),
        tools=replace(remote_options(options), **filled(given, "tools")),
        policy=policy_options(options),
        services=HostServices(
            memory_url=options.memory_url,
            sources=_sources(options.sources),
            channels=channels_of(options.channels, os.environ.get(VARIABLE, "")),
            channel=channel or ("json" if options.json else "terminal"),
            knowledge_base=knowledge_of(options) if options.knowledge else NO_KNOWLEDGE,
            web_search=_web_search(options),
            **filled(given, "services"),
        ),
        limits=replace(RunLimits.of(options.limits or {}), **filled(given, "limits")),
        plan=bool(options.plan_mode),
        worktree=options.worktree,
    )


def _instructions(said: str | None) -> str | None:
    """The instructions, from the file that is named."""
    if said is None or not said.startswith("@"):
        return said
    return read_file(Path(said[1:]).expanduser()).strip()


def remote_options(options: Options) -> ToolOptions:
    """Where the remote tools are, if there are to be any."""
    from quoth.agent.run.options import ToolOptions

    if options.remote is None:
        if options.local:
            raise UsageError("--local keeps a tool here that is remote too; it goes with --remote URL.")
        return ToolOptions()
    from quoth.agent.run.own import remote_url  # here: most commands have none

    url = remote_url(options.remote, ca=options.redis_ca)
    return ToolOptions(remote=url, local=options.local, prefix=options.key_prefix, key=options.key)


def policy_options(options: Options) -> PolicyOptions:
    """The rules and the reviewer, and where limits and requests are shared, if they are."""
    from quoth.agent.run.options import PolicyOptions

    place: dict[str, Any] = {}
    if options.shares:
        from quoth.tools.catalog.connection import redis_url  # here: most commands share nothing

        url = redis_url(options.shared, "QUOTH_SHARED", ca=options.redis_ca)
        place = {"shared": url, "prefix": options.key_prefix, "key": options.key}
    return PolicyOptions(**filled(vars(options), "policy"), **place)


def _sources(words: Sequence[str]) -> dict[str, str]:
    if not words:
        return {}
    from quoth.tools.knowledge.sources import sources_of

    return sources_of(words)


def knowledge_of(options: Options) -> FileKnowledge:
    """The knowledge base of the workspace."""
    from quoth.tools.call.workspace import Workspace
    from quoth.tools.knowledge.base import FileKnowledge

    return FileKnowledge(Workspace(options.folder), say=complain)


def _web_search(options: Options) -> WebSearch:
    """What ``--search`` or QUOTH_SEARCH names; a folder is relative to where the command runs."""
    from quoth.tools.call.services import NO_WEB_SEARCH

    spec = options.search if options.search is not None else os.environ.get("QUOTH_SEARCH") or None
    if spec is None:
        if options.search_keys:
            raise UsageError("--search-keys are for the answer of a server; name it with --search.")
        return NO_WEB_SEARCH
    from quoth.tools.knowledge.web_search import is_web, open_web_search

    where = spec if is_web(spec) or not spec.strip() else str(Path(spec).expanduser().absolute())
    return open_web_search(where, options.search_keys or "", options.folder)


def with_agent(
    options: Options,
    work: Callable[[AsyncAgent], Coroutine[Any, Any, int]],
    *,
    draws: bool = False,
    **more: Any,
) -> int:
    """Run ``work`` with an agent and return its exit code. The first Ctrl-C stops a run, the second one
    everything. With ``draws`` stdout is not redirected; ``more`` goes to ``agent_of``."""
    import asyncio
    import signal

    async def go() -> int:
        loop = asyncio.get_running_loop()
        async with agent_of(options, **more) as agent:
            for note in (*agent.policy.notes, *agent.config.notes):
                complain(note)
            task = asyncio.ensure_future(work(agent))
            pressed = told = False

            def end() -> None:
                nonlocal told
                told = True
                task.cancel()

            def interrupt() -> None:
                nonlocal pressed
                pressed = True
                if not agent.host.interrupt_politely():
                    task.cancel()

            before = signal.getsignal(signal.SIGINT)
            loop.add_signal_handler(signal.SIGINT, interrupt)
            for ending in (signal.SIGTERM, signal.SIGHUP):  # then the started programs are stopped too
                loop.add_signal_handler(ending, end)
            try:
                code = await task
                for _ in range(
                    3
                ):  # the loop's steps until a signal that came at the end of the work is heard
                    await asyncio.sleep(0)
                if told:
                    return interrupted(options.json)
                return INTERRUPTED if pressed and code == PENDING else code  # a question was taken back
            except asyncio.CancelledError:
                return interrupted(options.json)
            finally:
                for heard in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                    loop.remove_signal_handler(heard)
                signal.signal(signal.SIGINT, before)  # asyncio does not put it back

    if draws:
        return asyncio.run(go())
    with results_only():
        return asyncio.run(go())


def run_call(options: Options, work: Callable[[AsyncAgent], Coroutine[Any, Any, ToolResult]]) -> int:
    """Run ``work``, which makes one call; show its result and the requests that wait, and return the exit
    code."""
    from quoth.agent.terminal.progress import Progress

    async def shown(agent: AsyncAgent) -> int:
        sent = messages_of(agent, options.json)
        result = await work(agent)
        code = show_result(result, options.json, sent)
        tell_what_waits(agent, options, code)
        return code

    return with_agent(options, shown, on_event=Progress())  # of sub-agents, workers and programs


def tools_of(options: Options) -> ToolTable:
    """Load the tools without an agent, for commands that call none."""
    from quoth.tools.knowledge.skill_folders import has_skills
    from quoth.tools.loading import load_tools, with_shown

    _sources(options.sources)  # refused here, too
    with results_only():
        table = load_tools(options.tools, without=options.without, knowledge=options.knowledge)
    table = with_shown(table, "sources") if options.sources else table
    table = with_shown(table, "skill") if has_skills(options.folder) else table
    table = _with_servers(table, options)
    if options.remote is None and not options.local:
        return table
    remote = remote_options(options).open_remote(table)
    return table if remote is None else remote.table


def _with_servers(table: ToolTable, options: Options) -> ToolTable:
    """The table with the trusted tools of MCP servers."""
    from quoth.agent.config.loading import load_config
    from quoth.agent.run.servers import served

    root = options.folder

    def effects() -> Mapping[str, Sequence[EffectsOf]]:
        from quoth.tools.policy.files import load_policy  # here: most workspaces have no servers

        return load_policy(root, options.policy).effects

    table, servers = served(
        table, root, options.mcp, load_config(root), effects, sampling=options.mcp_sampling
    )
    for note in servers.notes if servers is not None else ():
        complain(note)
    return table


# Output


def messages_of(agent: AsyncAgent, as_json: bool) -> list[str]:
    """The list of the messages that the agent sends to the user from now on, if they are to be a part of the
    JSON that a command prints; else they are printed at once, and the list stays empty."""
    sent: list[str] = []
    if as_json:
        agent.deliver = sent.append
    return sent


def listener_for(options: StreamOptions) -> Speech | EventLines:
    """A listener that shows a running task: words and calls for a person, or each event as a JSON line."""
    if not options.stream:
        from quoth.agent.terminal.speech import Speech

        return Speech(aloud=not options.json, thoughts=options.thoughts)
    if not options.json:
        raise UsageError("--stream prints each event as a line of JSON; it goes with --json.")
    return EventLines()


class EventLines:
    """A listener that prints the events of the agent that ``watch`` was given as lines of JSON. The last is
    ``end``, with the object. When they cannot be printed, as when their reader has gone, the run is stopped,
    and ``finish`` raises that."""

    def __init__(self) -> None:
        self._agent: AsyncAgent | None = None
        self._failure: Exception | None = None

    def watch(self, agent: AsyncAgent) -> None:
        self._agent = agent

    def __call__(self, event: AgentEvent) -> None:
        if event.kind == "end" and not event.path:  # its Reply comes last, by ``finish``
            return
        if event.kind == "text" and self._agent is not None and self._agent.table.secrets:
            return
        if self._failure is None:
            try:
                print_json(event.to_json())
            except (OutputError, OSError) as error:
                self._failure = error
                if self._agent is not None:
                    self._agent.interrupt()

    def finish(self, kind: str, data: dict[str, Any]) -> None:
        """Print how the run ended, or the result of a call that was resumed alone."""
        if self._failure is not None:
            raise self._failure
        print_json({"event": kind, "data": data})

    def stop(self) -> None:
        """Do nothing: every line is whole."""


def show_result(
    result: ToolResult, as_json: bool, messages: Sequence[str] = (), by: Speech | EventLines | None = None
) -> int:
    """Print the result of a call and return the exit code. ``messages`` become a part of the JSON."""
    if as_json:
        more = {"messages": list(messages)} if messages else {}
        if isinstance(by, EventLines):
            by.finish("result", result.to_json() | more)
        else:
            print_json(result.to_json() | more)
        return EXIT_OF.get(result.status, FAILED)
    from quoth.agent.terminal.forms import failure_text, show_value

    if not result.ok:
        complain(failure_text(result))
        return EXIT_OF.get(result.status, FAILED)
    if result.value is not None:
        print_data(show_value(result.value).rstrip("\n"))
    if result.message:
        complain(result.message)
    return DONE


def show_reply(reply: Reply, as_json: bool, by: Speech | EventLines) -> int:
    """Print the reply of a run, without the parts that were printed before, and return the exit code."""
    from quoth.agent.terminal.speech import Speech

    by.stop()
    if not isinstance(by, Speech):
        by.finish("end", reply.to_json())
    elif as_json:
        print_json(reply.to_json())
    elif reply.has_answer and (text := reply.text if reply.unsent is None else reply.unsent):
        by.finish(text)
    elif reply.status == "done" and reply.follow_ups:
        pass  # they are all there is to say
    elif reply.status == "done" and not reply.messages:
        complain("Its reply is the message that was sent before.")
    for one in () if as_json else reply.follow_ups:
        print_data(one.text)
    if reply.bounded and not as_json:
        from quoth.agent.terminal.forms import budget_text

        complain(f"{budget_text(reply.spent, reply.left)}.")
    return EXIT_OF_RUN[reply.status]


def tell_plan(reply: Reply, options: Options) -> None:
    """Print where the plan of a run in plan mode is, and the commands that check, approve and fly it."""
    if (plan := reply.plan) is None:
        return
    from quoth.tools.text import number_of

    path = str(options.folder / plan.file)
    if not plan.steps:
        complain(f"The plan {path} was changed since its steps were written, so it stays as it is.")
        return
    complain(f"The plan has {number_of(plan.steps, 'step')}; none of its calls has run: {path}")
    tell_next("Edit it as you like; to check it", options.like("fly", path, "--check"))
    tell_next("To approve it as a whole", options.like("approve", path))
    tell_next("To fly it", options.like("fly", path))


def tell_worktree(agent: AsyncAgent, options: Options) -> None:
    """Print where the work of a run in a worktree is, and the commands that compare and merge it."""
    workspace, name = agent.workspace, agent.session
    if workspace.root == workspace.home:
        return
    from quoth.tools.shell.worktrees import Worktrees

    found = Worktrees(workspace.home).known(name)
    if not found.ahead:
        complain(f"It changed no file in the worktree {name}.")
        return
    complain(f"Its work is on the branch {found.branch}.")
    tell_next("To look at it", options.typed("worktrees", "diff", name))
    tell_next("To merge it", options.typed("worktrees", "merge", name))


def tell_how_to_go_on(agent: AsyncAgent, reply: Reply, options: Options) -> None:
    """Print the command that continues a failed run: it asks the model again, or continues the conversation
    where asking again would only repeat the failure."""
    if reply.status != "failed" or agent.runs.broken_off:
        return
    if agent.runs.may_ask_again():
        tell_next("To try again", options.typed("resume", agent.session))
    else:
        tell_next("To continue the conversation", options.typed("resume", agent.session, also=" TEXT"))


def tell_what_waits(agent: AsyncAgent, options: Options, code: int = DONE) -> None:
    """Print the commands that decide the waiting calls and resume the session, if any call waits; after a
    failure also the command that resumes what was broken off, if it is on record."""
    if code == FAILED and agent.runs.broken_off:
        tell_next("To continue it", options.typed("resume", agent.session))
        return
    if not agent.runs.waits:
        return
    waiting = agent.broker.requests(session=agent.session)
    own = [request for request in waiting if request.user == agent.user]
    aim = "Then continue with" if own else "To continue"
    tell_next(aim, options.typed("resume", agent.session), requests=own, typed=options.typed)


# Files


def write_new(path: Path, text: str) -> None:
    """Write a new file, whole or not at all. Raises UsageError if it exists or cannot be written."""
    from quoth.tools.storage.atomic import new_file

    try:
        new_file(path, [text.encode()])
    except FileExistsError:
        raise UsageError(f"There is a file {path} already.") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}.") from None


def read_text(file: str) -> str:
    """Return the text of a file, or of stdin for ``-``. Raises UsageError."""
    return text_of("-") if file == "-" else read_file(file)


def text_of(argument: str) -> str:
    """Return the argument itself, or the text of stdin for ``-``."""
    return read_stdin() if argument == "-" else argument


# The workspace


def tell_workspace(options: Options) -> None:
    """Print the workspace if the current folder is below it; merges that were broken off; and once, that a
    subfolder keeps its own sessions. Raises UsageError where no workspace can be taken."""
    project = options.project
    for note in worktrees_dir(real_path(project.root)).glob("*.merging"):
        how = options.typed("worktrees", "merge", note.stem)
        complain(f"A merge of the worktree {note.stem} was broken off. To finish or undo it: {how}")
    if place := below(project.root):
        root = real_path(project.root)
        complain(f"workspace {root} (you are in {place}/; paths in forms begin at {root})")
    if project.above is not None and _is_first(store_path(project.root)):
        complain(
            f"{project.root} is in the project {project.above}, but has sessions of its own, so it stays a"
            " workspace. To move them to the project: quoth sessions --adopt"
        )


def _is_first(store: Path) -> bool:
    """Whether this was not said before of a store; where that cannot be kept, it is said again."""
    try:
        store.with_suffix(".told").touch(exist_ok=False)
    except FileExistsError:
        return False
    except OSError:
        pass
    return True


def adopt(options: Options) -> int:
    """Move the sessions and the memory that a subfolder has of its own to its project."""
    import asyncio

    from quoth.agent.session.adoption import adopt as moved
    from quoth.tools.text import number_of

    if is_inside():
        raise UsageError("A program that a tool runs cannot move sessions.")
    project = find_project(options.workspace or ".")
    root, here, store = project.above or project.root, project.here, store_path(project.here)
    if root == here or is_missing(store):
        raise UsageError(f"{here} is not a subfolder with sessions of its own: nothing is to be moved.")
    done = asyncio.run(moved(store, store_path(root), options.asker))
    if options.json:
        print_json({"workspace": str(root), "sessions": done.sessions, "blocks": done.blocks})
        return DONE
    what = f"{number_of(done.sessions, 'session')} and {number_of(done.blocks, 'block')} of memory"
    print_line(f"Moved {what} to {root}.")
    inner = here.relative_to(root)
    complain(
        f"Paths in these sessions begin at {inner}/. Their audit, and what files held before: {done.kept}"
    )
    return DONE
