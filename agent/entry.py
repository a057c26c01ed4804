"""The entry point of the command: Ctrl-C ends it without a traceback, even while imports still run.

It cannot cover Python's own start, which is before this file.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # signal imports half of the library
import atexit
import gc
import os
import sys

USAGE, INTERRUPTED = 2, 130
# The command and ``from quoth import Agent`` say this before they import anything that Windows lacks.
NO_WINDOWS = "quoth needs Linux or macOS; on Windows use WSL 2."
OBJECTS = 100_000  # allocated between two collections; a call allocates about half, mostly by imports


def leave(*_: object) -> None:
    """End the process at once, as a signal handler. Only correct while there is nothing to clean up."""
    if "--json" in sys.argv:
        os.write(1, b'{"status": "interrupted", "message": "Interrupted."}\n')
    os.write(2, b"quoth: Interrupted.\n")
    os._exit(INTERRUPTED)


if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:  # otherwise it must stay ignored
    _signal.signal(_signal.SIGINT, leave)


def main() -> int:
    """Run the command ``quoth`` and return its exit code."""
    if sys.platform == "win32":
        sys.stderr.write(f"quoth: {NO_WINDOWS}\n")
        return USAGE
    gc.set_threshold(OBJECTS)  # the default, 700, costs a short command a tenth of its time
    if sys.argv[1:2] == ["guard"]:
        from quoth.agent.guard import hook  # here: it answers without the parser of the command line

        if (call := hook.parsed_words(sys.argv[2:])) is not None:
            return hook.run(*call)
    from quoth.agent.cli import main as cli

    try:
        code = cli.main()
    finally:  # the work is done: an interrupt while Python shuts down would end it by the signal
        _signal.signal(_signal.SIGINT, _signal.SIG_IGN)
        gc.freeze()  # no last collection of garbage: the process ends anyway
    local = sys.modules.get("quoth.neuro.backends.local")
    # No one needs the threads that still work, of a model or the sandbox: a person need not wait for the
    # first, and the second would print an error when Python has shut down.
    if code == INTERRUPTED or (local is not None and local.is_at_work()):
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    return code
