"""The commands ``quoth worktrees``: list, compare, merge and remove the git worktrees of sessions.

Work that is in no commit yet, because a process was killed or a person has changed files, is committed before
it is shown, unless a run is still in progress.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from quoth.agent.cli.common import run_call
from quoth.agent.cli.options import DONE, FAILED, WORK, Actions, Options, argument
from quoth.agent.terminal.input import is_inside
from quoth.agent.terminal.output import complain, print_colored, print_json, print_table, tell_next
from quoth.tools.errors import UsageError
from quoth.tools.text import number_of

if TYPE_CHECKING:
    from quoth.tools.shell.worktrees import Worktree, Worktrees

NAME = "the worktree, named after its session"


class WorktreeOptions(Options):
    name: str = argument("NAME", NAME)


class MergeOptions(Options):
    groups = WORK
    name: str = argument("NAME", NAME)


class RemoveWorktreeOptions(Options):
    groups = "asking"
    name: str = argument("NAME", NAME)


def list_worktrees(options: Options) -> int:
    """Print the worktrees, one per line."""
    repository = _repository(options)
    found = [repository.known(name) for name in repository.names()]
    if options.json:
        print_json([_as_json(options, one) for one in found])
    elif found:
        print_table([[one.name, _state(options, one), str(one.folder)] for one in found])
    else:
        complain("There are no worktrees. To begin one: quoth run --worktree TASK")
    return DONE


def diff(options: WorktreeOptions) -> int:
    """Print the changes in a worktree since it began; the exit code is 1 if a merge would conflict."""
    from quoth.agent.session.undo import difference, file_lines
    from quoth.tools.errors import ToolError

    repository, name, tip = _committed(options)
    changes = repository.since_base(tip)
    found = [difference(path, before, after) for path, before, after in changes]
    conflict = ""
    try:
        repository.merged(name, tip)
    except ToolError as error:
        conflict = str(error)
    if options.json:
        print_json(
            {"name": name, "commit": tip, "conflict": conflict, "files": [one.to_json() for one in found]}
        )
    else:
        print_colored(lambda color: (line for one in found for line in file_lines(one, "", color=color)))
        complain(
            conflict or (f"{number_of(len(found), 'file')} changed." if found else "No file was changed.")
        )
    return FAILED if conflict else DONE


def merge(options: MergeOptions) -> int:
    """Merge a worktree by a call of ``merge-worktree``, which asks and shows the difference."""
    from quoth.tools.lisp.forms import CallForm

    repository = _repository(options)
    if options.name in repository.names() and repository.finish(options.name):
        complain(f"The merge of {options.name} was broken off, and is finished now.")
        return DONE
    _, name, tip = _committed(options)
    form = CallForm("merge-worktree", {"name": name, "commit": tip})
    code = run_call(options, lambda agent: agent.call(form))
    if code == DONE and not options.json:
        tell_next("To remove the worktree", options.typed("worktrees", "remove", name))
    return code


def remove(options: RemoveWorktreeOptions) -> int:
    """Remove a worktree and its branch; asks first if work in it was not merged."""
    from quoth.agent.terminal.ask import confirmed

    if is_inside():
        raise UsageError("A program that a tool runs cannot remove a worktree.")
    repository = _repository(options)
    one = repository.known(options.name)
    _require_idle(options, one.name)
    _require_no_requests(options, one.name)
    if one.ahead or one.uncommitted:
        question = f"Remove the worktree {one.name} ({_state(options, one)})? Its work is lost."
        if not (options.yes or confirmed(question, no_input=options.no_input)):
            complain("Nothing was removed.")
            return FAILED
    repository.remove(one.name)
    if options.json:
        print_json({"removed": one.name})
    else:
        complain(f"Removed the worktree {one.name} and the branch {one.branch}.")
    return DONE


def _repository(options: Options) -> Worktrees:
    from quoth.tools.shell.worktrees import Worktrees

    return Worktrees(options.folder)


def _committed(options: WorktreeOptions | MergeOptions) -> tuple[Worktrees, str, str]:
    """The repository, the name of a worktree, and the last commit on its branch, with all work."""
    from quoth.agent.run.worktrees import commit_work
    from quoth.tools.call.workspace import Workspace

    if is_inside():
        raise UsageError("A program that a tool runs cannot use the worktrees of others.")
    repository = _repository(options)
    one = repository.known(options.name)
    _require_idle(options, one.name)
    if not one.tip:
        raise UsageError(
            f"The branch {one.branch} is missing. To remove the rest: quoth worktrees remove {one.name}"
        )
    tip = one.tip
    if one.uncommitted:
        tip = commit_work(Workspace(options.folder), one.name, "")
    return repository, one.name, tip


def _require_idle(options: Options, name: str) -> None:
    if _is_running(options, name):
        raise UsageError(f"A run is in progress in the worktree {name}. Wait for its end, or interrupt it.")


def _require_no_requests(options: Options, name: str) -> None:
    from quoth.agent.cli.consent import opened

    with opened(options) as (_, broker):
        waiting = broker.requests(session=name) if broker else []
    if waiting:
        how = options.typed("deny", waiting[0].id)
        raise UsageError(
            f"Session {name} waits for your decision on {number_of(len(waiting), 'request')}. First: {how}"
        )


def _is_running(options: Options, name: str) -> bool:
    from quoth.agent.session.session import is_driven
    from quoth.tools.storage.paths import store_path

    return is_driven(store_path(options.folder), name)


def _state(options: Options, one: Worktree) -> str:
    said = []
    if one.ahead:
        said.append(f"{number_of(one.ahead, 'commit')} to merge")
    if one.uncommitted:
        said.append(f"{number_of(one.uncommitted, 'file')} not committed")
    if _is_running(options, one.name):
        said.append("running")
    if one.state:
        said.append(one.state)
    return ", ".join(said) or "nothing to merge"


def _as_json(options: Options, one: Worktree) -> dict[str, Any]:
    return {
        "name": one.name,
        "branch": one.branch,
        "commit": one.tip,
        "ahead": one.ahead,
        "uncommitted": one.uncommitted,
        "state": one.state,
        "running": _is_running(options, one.name),
        "folder": str(one.folder),
    }


ACTIONS: Actions = {
    "list": (list_worktrees, "List the worktrees."),
    "diff": (diff, "Show the changes in a worktree."),
    "merge": (merge, "Merge a worktree into the current branch, after asking you."),
    "remove": (remove, "Remove a worktree and its branch."),
}
