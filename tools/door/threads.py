"""Threads for functions that block: one that has come to its end waits for the next function.

It knows functions; it must not know calls, deadlines or event loops. A function that does not end holds up no
other, nor the end of the process: its thread is never waited for, and never used again.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable
from queue import SimpleQueue

KEPT = 16  # threads that may wait for a function

# What is to be done; it returns what tells of its end, which is called once the thread is free again.
Job = Callable[[], Callable[[], None]]


class Stop(BaseException):
    """Thrown into a thread whose function must end."""


class _Thread(threading.Thread):
    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._job: Job | None = None
        self._stopped = False
        self._lock = threading.Lock()

    def give(self, job: Job | None) -> None:
        self._job = job
        self._jobs.put(job)

    def run(self) -> None:
        with contextlib.suppress(Stop):  # it may arrive just after the function has ended
            while (job := self._jobs.get()) is not None and self._goes_on(job()):
                del job  # and what it holds

    def _goes_on(self, tell: Callable[[], None]) -> bool:
        with self._lock:  # a Stop that is thrown from now on is none of the next function
            goes_on = not self._stopped and len(_idle) < KEPT
            self._job = None
            self.name = "quoth-idle"
            if goes_on:
                _idle.append(self)
        tell()
        return goes_on

    def stop(self, job: Job) -> None:
        import ctypes  # here: few functions have to be stopped

        with self._lock:
            if self._job is job and self.ident is not None:
                self._stopped = True
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self.ident), ctypes.py_object(Stop))


_idle: list[_Thread] = []  # the one that was used last is used next
os.register_at_fork(after_in_child=_idle.clear)  # a fork has no thread but its own


def start(job: Job, name: str) -> Callable[[], None]:
    """Do a job in a thread. What is returned stops it: any Python loop ends; one that is stuck in C is left
    behind."""
    try:
        thread = _idle.pop()
    except IndexError:
        thread = _Thread()
    thread.name = name
    thread.give(job)
    if thread.ident is None:
        thread.start()
    return lambda: thread.stop(job)


def end_idle() -> None:
    """End the threads that wait for a function."""
    ending = []
    while _idle:
        with contextlib.suppress(IndexError):  # another thread has taken the last one
            ending.append(_idle.pop())
    for thread in ending:
        thread.give(None)
    for thread in ending:
        thread.join()
