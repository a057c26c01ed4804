"""The entry point of the command: Ctrl-C ends it without a traceback even while imports still run.

Knows signals and Python's garbage collector only. It cannot cover Python's own start, before this file.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # signal imports half of the library
import atexit
import gc
import os
import sys

USAGE, INTERRUPTED = 2, 130
# Said by the command and by ``from quoth import Agent``, before anything that Windows lacks is imported.
NO_WINDOWS = "quoth needs Linux or macOS; on Windows use WSL 2."
OBJECTS = 100_000  # made between two looks for garbage; a call makes about half, nearly all by imports


def leave(*_: object) -> None:
    """End the process at once, as a signal handler. Only correct while there is nothing to clean up."""
    if "--json" in sys.argv:
        os.write(1, b'{"status": "interrupted", "message": "Interrupted."}\n')
    os.write(2, b"quoth: Interrupted.\n")
    os._exit(INTERRUPTED)


if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:  # else it is to be ignored
    _signal.signal(_signal.SIGINT, leave)


def main() -> int:
    """Run the command ``quoth`` and return its exit code."""
    if sys.platform == "win32":
        sys.stderr.write(f"quoth: {NO_WINDOWS}\n")
        return USAGE
    gc.set_threshold(OBJECTS)  # by default 700: of a short command a tenth goes into looks that find nothing
    from quoth.agent.cli import main as cli

    try:
        code = cli.main()
    finally:  # all is done and said: while Python puts itself away, an interrupt would end it by the signal
        _signal.signal(_signal.SIGINT, _signal.SIG_IGN)
        gc.freeze()  # what the process takes with it need not be looked through for garbage once more
    local = sys.modules.get("quoth.neuro.backends.local")
    # What is still at work in a thread, a model or the sandbox's own, is so for nobody any more: a person
    # does not wait for the one, and the other would complain aloud when it finds Python put away.
    if code == INTERRUPTED or (local is not None and local.is_at_work()):
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    return code
