"""Prints where the workspace is, and moves the sessions of a subfolder to its project.

Knows how a project is found and where stores are; no other command.
"""

from __future__ import annotations

from pathlib import Path

from quoth.agent.cli.options import DONE, Options
from quoth.agent.terminal.input import is_inside
from quoth.agent.terminal.output import complain, print_json, print_line
from quoth.tools.errors import UsageError
from quoth.tools.policy.project import below, find_project
from quoth.tools.storage.paths import real_path, store_path
from quoth.tools.storage.same_file import is_missing


def tell_workspace(options: Options) -> None:
    """Print the workspace if the current folder is below it; once, that a subfolder keeps its own sessions.
    Raises UsageError where no workspace can be taken."""
    project = options.project
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
        _mark(store).touch(exist_ok=False)
    except FileExistsError:
        return False
    except OSError:
        return True
    return True


def _mark(store: Path) -> Path:
    return store.with_suffix(".told")


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
