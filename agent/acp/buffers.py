"""The buffers of an ACP client: the files below the folder of its session, read and written by the client.

Sources: fs/read_text_file and fs/write_text_file of https://agentclientprotocol.com (protocol 1).
"""

from __future__ import annotations

import time
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any

from acp.core import RequestError
from acp.schema import FileSystemCapabilities

from quoth.agent.acp.loops import OnLoop
from quoth.tools.registry.values import encodable
from quoth.tools.storage.paths import is_missing
from quoth.tools.text import short
from quoth.tools.visible import visible

READ_SECONDS = 4.0  # less than a person waits for a difference: SECONDS of tools/door/changes.py
WRITE_SECONDS = 20.0  # a formatter may run as the client saves
KEPT_SECONDS = 2.0  # of a text: a call that lasts longer asks again
NOT_FOUND = -32002  # the code of the protocol for a missing file or session


class ClientBuffers:
    """The Buffers of the session ``session``, which the client has opened in ``folder``. Its paths begin with
    that folder as the client spelled it. A text that was read is used again until ``forget``, which follows
    each event in which a person may have typed. A client that does not answer about a file is not asked about
    this file again until it has."""

    def __init__(
        self, client: OnLoop, session: str, folder: Path, capabilities: FileSystemCapabilities
    ) -> None:
        self._client, self._session = client, session
        self._folder, self._real = folder, folder.resolve()
        self._writes = bool(capabilities.write_text_file)
        self._silent: set[str] = set()  # files about which the client has not answered in time
        self._texts: dict[Path, tuple[float, str | None]] = {}  # when each was asked for

    def forget(self) -> None:
        """Ask the client again for each text."""
        self._texts = {}

    def read(self, real: Path, *, latest: bool = False) -> str | None:
        if not self._has(real):
            return None
        texts, now = self._texts, time.monotonic()  # a text that comes after ``forget`` is not kept
        since, text = texts.get(real, (0.0, None))
        if latest or real not in texts or now - since > KEPT_SECONDS:
            text = self._read(real)
            texts[real] = now, text
        return text

    def _read(self, real: Path) -> str | None:
        try:
            answer = self._answer("read_text_file", real, READ_SECONDS)
        except RequestError as error:
            if error.code == NOT_FOUND or is_missing(real):
                return None
            raise _refused(error) from None
        return str(answer.content)

    def writes(self, real: Path) -> bool:
        return self._writes and self._has(real)

    def write(self, real: Path, text: str) -> None:
        try:
            self._answer("write_text_file", real, WRITE_SECONDS, content=text)
        except RequestError as error:
            raise _refused(error) from None
        finally:
            self.forget()

    def _has(self, real: Path) -> bool:
        """Whether the client knows a file: it is in its folder, and its name is text."""
        return real.is_relative_to(self._real) and encodable(str(real)) == str(real)

    def _answer(self, method: str, real: Path, seconds: float, **more: Any) -> Any:
        """The client's answer. Raises RequestError, and OSError if none comes."""
        path = str(self._folder / real.relative_to(self._real))
        if path in self._silent:
            raise TimeoutError("the editor has not answered an earlier request for this file")
        try:
            asked = self._client.begin(method, session_id=self._session, path=path, **more)
            return asked.result(seconds)
        except RequestError:
            raise
        except TimeoutError:
            self._silent.add(path)
            asked.add_done_callback(lambda _: self._silent.discard(path))
            raise TimeoutError(_silence(method, seconds)) from None
        except (ConnectionError, CancelledError):
            raise ConnectionError("the editor has closed the connection") from None
        except Exception as error:
            raise OSError(f"the editor's answer is not of the protocol ({type(error).__name__})") from None


def _silence(method: str, seconds: float) -> str:
    if method == "read_text_file":
        return f"the editor did not answer within {seconds:g} s"
    return f"the editor did not confirm the write within {seconds:g} s; read the file before you repeat it"


def _refused(error: RequestError) -> OSError:
    said = error.data.get("details") if isinstance(error.data, dict) else None
    return OSError(f"the editor refused it: {short(visible(str(said or error)), 200).rstrip('.')}")
