"""A process in which the command is imported and waits; it forks for each start of it, or of a script.

A command of its own needs half a second, most of it for imports, and a fork 30 ms. All else is as in a
process of its own: folder, environment, streams, terminal, signals, exit code. Variables that Python reads
when it starts (PYTHONPATH, PYTHONIOENCODING) have no effect. With ``--bare`` only what others wrote is
imported. Knows no test; commands.py talks to it over the
socket that is its standard input.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import gc
import json
import os
import signal
import socket
import struct
import sys
import termios
import threading
from importlib import import_module
from types import ModuleType
from typing import Any

MOST = 1 << 20  # bytes of one request
SIZE = struct.Struct("I")
LIBRARIES = (
    "anyio._backends._asyncio",
    "apsw",
    "httpcore",
    "httpx",
    "hy",
    "hy.errors",
    "pathspec",
    "prompt_toolkit.shortcuts",
    "pydantic_monty",
    "regex",
    "rich.live",
)
# An environment may be without them.
EXTRAS = (
    *(
        "acp",
        "anyio",
        "httpx2",
        "jsonschema",
        "mcp",
        "mcp_types",
        "opentelemetry",
        "redis",
        "starlette",
        "taskiq",
    ),
    *("taskiq_redis", "tree_sitter", "uvicorn"),
)
OF_EXTRAS = ("h2.connection", "keyring.core", "mcp.server.mcpserver")


def serve(requests: socket.socket) -> None:
    """Fork for each request: the size of its text, with the three streams and a pipe that is told how the
    command ended; then the text itself. The answer is the number of the process."""
    ends: dict[int, int] = {}  # the pipes, by process
    signal.signal(signal.SIGCHLD, lambda *_: reap(ends))
    while True:
        size, descriptors, _, _ = socket.recv_fds(requests, SIZE.size, 4)
        if not size:  # the tests have ended
            return
        asked = json.loads(requests.recv(SIZE.unpack(size)[0], socket.MSG_WAITALL))
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
        pid = os.fork()
        if not pid:
            become(descriptors[:3], [requests.fileno(), descriptors[3], *ends.values()], **asked)
        ends[pid] = descriptors[3]
        for stream in descriptors[:3]:
            os.close(stream)
        requests.sendall(SIZE.pack(pid))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})


def reap(ends: dict[int, int]) -> None:
    with contextlib.suppress(ChildProcessError):
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            end = ends.pop(found[0])
            with contextlib.suppress(BrokenPipeError):
                os.write(end, str(os.waitstatus_to_exitcode(found[1])).encode())
            os.close(end)


def become(
    streams: list[int],
    strange: list[int],
    words: list[str],
    cwd: str,
    env: dict[str, str],
    terminal: bool,
    user: int = 0,
) -> None:
    """Run the command in this process, and end it."""
    for number in strange:
        os.close(number)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    for stream in streams:
        if stream > 2:
            os.close(stream)
    if terminal:
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
    os.chdir(cwd)
    if user:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
        ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)  # PR_SET_DUMPABLE: its own places in /proc, as after an exec
    os.environ.clear()
    os.environ.update(env)
    script = words[0] if words and words[0].endswith(".py") else ""
    sys.argv = words if script else ["quoth", *words]
    sys.stdin = sys.__stdin__ = open(0, encoding="utf-8")  # noqa: SIM115
    sys.stdout = sys.__stdout__ = open(1, "w", encoding="utf-8")  # noqa: SIM115
    sys.stderr = sys.__stderr__ = open(2, "w", 1, "utf-8", "backslashreplace")  # noqa: SIM115
    os._exit(run(script))


def run(script: str) -> int:
    """The command, or the script, and a traceback and 1 for what it does not catch. What is registered with
    atexit is left out: it readies Python for taking itself apart, which this process does not do."""
    from quoth.agent.entry import main

    code: Any = 1
    try:
        if script:
            main_module = sys.modules["__main__"] = ModuleType("__main__")
            main_module.__file__ = script
            with open(script, "rb") as file:  # not runpy, in which Hy puts what does not fit Python 3.12.1
                exec(compile(file.read(), script, "exec", dont_inherit=True), vars(main_module))
            code = 0
        else:
            code = main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException as error:
        sys.excepthook(type(error), error, error.__traceback__)
    threading._shutdown()  # type: ignore[attr-defined]
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    return code or 0


def share_by_large_pages() -> None:
    """Move what this process has made into pages of 2 MB, where the system has them: a fork copies one entry
    for each, instead of 512. A start needs a third less then."""
    huge, collapse, size = 14, 25, 2 << 20  # MADV_HUGEPAGE and MADV_COLLAPSE of Linux
    advise = getattr(ctypes.CDLL(None), "madvise", None)
    with contextlib.suppress(OSError), open("/proc/self/maps") as maps:
        for line in maps.readlines() if advise else ():
            place, rights, _, _, file, *name = line.split()
            begin, end = (int(one, 16) for one in place.split("-"))
            begin, end = (begin + size - 1) // size * size, end // size * size
            if rights == "rw-p" and file == "0" and name in ([], ["[heap]"]) and begin < end:
                for advice in (huge, collapse):
                    advise(ctypes.c_void_p(begin), ctypes.c_size_t(end - begin), advice)


def import_all() -> None:
    """Import all that is ours, and the libraries, and make the patterns by which replies are read."""
    from pathlib import Path

    for name in ("agent", "neuro", "tools"):
        room = Path(str(import_module(f"quoth.{name}").__file__)).parent
        for path in sorted(room.rglob("*.py")):
            module = ".".join([name, *path.relative_to(room).with_suffix("").parts]).removesuffix(".__init__")
            if "public" not in module and "__main__" not in path.read_text():  # no script
                try:
                    import_module(f"quoth.{module}")
                except ModuleNotFoundError as error:
                    if str(error.name).partition(".")[0] not in EXTRAS:
                        raise
    for name in ("quoth.agent.loop", "quoth.neuro.think", *LIBRARIES):
        import_module(name)
    for name in OF_EXTRAS:
        with contextlib.suppress(ModuleNotFoundError):
            import_module(name)
    import_module("quoth.neuro.reading.reply").read_reply("(t)", ["t"])


def prepare() -> None:
    """Import what commands import, and let one run, for what the first one makes and all others use."""
    import asyncio
    import tempfile
    from pathlib import Path

    import quoth.agent.entry  # noqa: F401  first, as in the command
    from quoth.agent.cli.main import main

    import_all()
    with tempfile.TemporaryDirectory() as place, open(os.devnull, "w") as nowhere:
        os.environ.update(QUOTH_STATE=place, QUOTH_CONFIG=place)
        sys.stdout = nowhere
        tools = Path(place, "t.hy")
        tools.write_text('(require quoth [def-cognitive-tool])\n(def-cognitive-tool t "It." :body 1)\n')
        import new_stores

        new_stores.copied()
        main(["call", "(t)", "--tools", str(tools), "--workspace", place])  # a program would start threads
    asyncio.set_event_loop(None)


def prepare_libraries() -> None:
    """Import what others wrote, and nothing of ours: that a command has to import by itself."""
    for name in LIBRARIES:
        import_module(name)


if __name__ == "__main__":
    prepare_libraries() if "--bare" in sys.argv else prepare()
    gc.collect()
    gc.freeze()
    share_by_large_pages()
    if threading.active_count() > 1:
        raise SystemExit(f"A fork would lose {threading.enumerate()}.")
    serve(socket.socket(fileno=os.dup(0)))
