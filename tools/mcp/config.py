"""Reads which MCP servers are configured: files with ``mcpServers``, as other programs write them.

Values are kept as written, so that lists, pins and messages contain no secret; ``expand`` replaces
``${VAR}`` when a server is started. Imports nothing of the SDK.

A workspace's own ``.mcp.json`` counts once a person trusts it, and never replaces a server of the user's own.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from quoth.tools.call.redaction import SECRET, redact, redact_url, sounds_secret
from quoth.tools.errors import UsageError, did_you_mean, no_such
from quoth.tools.lisp.forms import kebab
from quoth.tools.policy.files import Trust, at_home, read_bytes, trusted_bytes
from quoth.tools.storage.atomic import replace_file
from quoth.tools.storage.paths import is_missing, real_path, user_servers
from quoth.tools.text import listed
from quoth.tools.visible import visible

OWN_NAME = ".mcp.json"  # of a workspace, as Claude Code names it
TRUST = Trust(kind=".mcp")
KEY = "mcpServers"
LONGEST_NAME = 40  # characters: with two hyphens and the name of a tool at most 64
RESERVED = {"quoth", "mcp"}
HTTP_KINDS = {
    "http",
    "streamable-http",
    "streamablehttp",
    "streamable_http",
}  # ``type``, as programs write it
FIELDS = ("command", "args", "env", "cwd", "url", "headers", "type", "disabled")
_NAME = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*")
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_EDITOR_VARIABLE = re.compile(r"\$\{(?:env|input|config|workspaceFolder\w*):[^}]*\}")
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_KINDS = {str: "text", list: "a list", dict: "an object", bool: "true or false", type(None): "null"}


@dataclass(frozen=True)
class ServerConfig:
    """One server: a program (``command``) or an address (``url``)."""

    name: str
    """In kebab case, as the names of its tools begin."""
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Variables added to HOME, LOGNAME, PATH, SHELL, TERM and USER."""
    cwd: str = ""
    """Relative to the workspace. Without it a server of the workspace's own file starts there, any other in
    an empty folder."""
    url: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    source: str = ""
    """The file it is from, for messages."""

    @property
    def target(self) -> str:
        """The command line or the URL as written, for lists and pins."""
        return self.url or json.dumps([self.command, *self.args], ensure_ascii=False)

    @property
    def named(self) -> str:
        """Its name as a command takes it, with the file that it is from unless it is found without."""
        if self.source in ("", OWN_NAME, at_home(user_servers())):
            return self.name
        home, slash, rest = self.source.partition("~/")
        file = f"~/{shlex.quote(rest)}" if slash and not home else shlex.quote(self.source)
        return f"{self.name} --mcp {file}"

    @property
    def shown(self) -> str:
        """The target for people and lists, without texts that look like secrets."""
        return shown_target(self.target)


def shown_target(target: str) -> str:
    """A command line or URL of a server or its pins, without texts that look like secrets."""
    if not target.startswith("["):
        return redact_url(target)
    words = json.loads(target)
    hidden = [
        SECRET if before[:1] == "-" and sounds_secret(before) else word
        for before, word in zip(["", *words], words, strict=False)
    ]
    return redact(json.dumps(hidden, ensure_ascii=False))


class Servers(NamedTuple):
    """The configured servers by name, and notes for the person."""

    configs: Mapping[str, ServerConfig]
    notes: tuple[str, ...] = ()

    def find(self, name: str) -> ServerConfig:
        """The server of that name. Raises UsageError."""
        if (found := self.configs.get(kebab(name))) is None:
            hint = "" if self.configs else " Add one: quoth mcp add NAME COMMAND…"
            raise UsageError(no_such("MCP server", name, self.configs, "The servers are") + hint)
        return found


NO_SERVERS = Servers({})


def load_servers(root: Path, given: Iterable[str | os.PathLike[str]] = ()) -> Servers:
    """The servers for a workspace: those of the ``given`` files, then the user's own, then the workspace's if
    its file is trusted. Of one name, the first counts. Raises UsageError for a file that cannot be read or
    that changed since it was trusted."""
    found: dict[str, ServerConfig] = {}
    notes: list[str] = []
    for path in map(real_path, given):  # else a .mcp.json of another folder would look like the workspace's
        _join(found, read_file(path), notes)
    if not is_missing(mine := user_servers()):
        _join(found, read_file(mine), notes)
    own, untrusted = trusted_bytes(root, root / OWN_NAME, TRUST, "its servers are not used")
    if own is not None:
        _join(found, parse(own, OWN_NAME), notes)
    return Servers(found, (*notes, *untrusted))


def own_servers(root: Path) -> bytes | None:
    """The text of a workspace's own file; None if it has none. Raises UsageError if it is not valid."""
    path = root / OWN_NAME
    if is_missing(path):
        return None
    data = read_bytes(path, f"There is no {OWN_NAME} in {root}.")
    parse(data, OWN_NAME)
    return data


def read_file(path: Path) -> Servers:
    """The servers in a file. Raises UsageError."""
    return parse(read_bytes(path, f"There is no file {path}."), at_home(path))


def parse(data: bytes, source: str) -> Servers:
    """The servers in the text of a file named ``source``. Raises UsageError."""
    try:
        said = json.loads(data.decode("utf-8-sig"), object_pairs_hook=_unique)
    except UnicodeDecodeError:
        raise UsageError(f"{source} is not UTF-8 text.") from None
    except json.JSONDecodeError as error:
        raise UsageError(f"{source}:{error.lineno}:{error.colno}: this is not JSON: {error.msg}.") from None
    except RecursionError:
        raise UsageError(f"{source}: the JSON is nested too deeply.") from None
    except _TwiceError as error:
        raise UsageError(f"{source}: {visible(str(error))} is given twice in one object.") from None
    if not isinstance(said, dict) or KEY not in said:
        known = did_you_mean(next(iter(said), ""), [KEY]) if isinstance(said, dict) else ""
        example = '{"mcpServers": {"time": {"command": "uvx", "args": ["mcp-server-time"]}}}'
        raise UsageError(f"{source} has no {KEY}.{known} Example: {example}")
    return read_servers(said[KEY], source)


def read_servers(said: Any, source: str) -> Servers:
    """The servers of a mapping from names to settings, as under ``mcpServers``. Raises UsageError."""
    entries = _typed(said, dict, f"{source}: {KEY}")
    found: dict[str, ServerConfig] = {}
    written: dict[str, str] = {}
    notes: list[str] = []
    for name, entry in entries.items():
        slug = server_name(name, source)
        if slug in written:
            raise UsageError(
                f"{source}: the servers {visible(written[slug])} and {visible(name)} would both be named "
                f"{slug}. Rename one."
            )
        written[slug] = name
        config, ignored = _entry(slug, entry, f"{source}: {KEY}.{visible(name)}", source)
        if ignored:
            notes.append(f"{source}: {slug}: quoth ignores {listed([visible(one) for one in ignored])}.")
        if config is not None:
            found[slug] = config
    return Servers(found, tuple(notes))


def server_name(name: str, source: str = "") -> str:
    """The name of a server in kebab case: ``My_Server`` is ``my-server``. Raises UsageError."""
    where = f"{source}: " if source else ""
    slug = re.sub(r"[ ._]+", "-", kebab(name))
    if not _NAME.fullmatch(slug):
        raise UsageError(
            f"{where}{visible(name)} is not the name of a server: use letters, digits and single hyphens, "
            "with a letter first."
        )
    if len(slug) > LONGEST_NAME:
        raise UsageError(
            f"{where}the name {slug} has {len(slug)} characters; at most {LONGEST_NAME} are allowed."
        )
    if slug in RESERVED:
        raise UsageError(f"{where}a server cannot be named {slug}: the name is reserved. Rename it.")
    return slug


def _entry(name: str, said: Any, at: str, source: str) -> tuple[ServerConfig | None, list[str]]:
    """One server, or None if it is disabled; and the fields that are ignored. Raises UsageError."""
    entry = _typed(said, dict, at)
    ignored = [key for key in entry if key not in FIELDS]
    command, url = (_typed(entry.get(key, ""), str, f"{at}.{key}").strip() for key in ("command", "url"))
    args = _texts(entry.get("args", []), f"{at}.args")
    env, headers = (_mapping(entry.get(key, {}), f"{at}.{key}") for key in ("env", "headers"))
    cwd = _typed(entry.get("cwd", ""), str, f"{at}.cwd")
    kind = _typed(entry.get("type", ""), str, f"{at}.type").lower()
    if _typed(entry.get("disabled", False), bool, f"{at}.disabled"):
        return None, ignored
    if kind == "sse":
        raise UsageError(f"{at}: the transport sse is not supported; give the server's Streamable HTTP URL.")
    if kind and kind != "stdio" and kind not in HTTP_KINDS:
        raise UsageError(f"{at}.type: {no_such('transport', kind, ('stdio', 'http'))}")
    if bool(command) == bool(url):
        hint = "".join(did_you_mean(one, ("command", "url")) for one in ignored[:1]) if not command else ""
        raise UsageError(f"{at} needs either a command or a url{', not both' if command else ''}.{hint}")
    if kind and (kind == "stdio") == bool(url):
        raise UsageError(f"{at}: type is {kind}, which has no {'url' if url else 'command'}.")
    for key, misplaced in (("args", args and url), ("env", env and url), ("headers", headers and command)):
        if misplaced:
            raise UsageError(f"{at}: a server with a {'url' if url else 'command'} has no {key}.")
    for key in env:
        if not key or "=" in key or "\0" in key:
            raise UsageError(f"{at}.env: {visible(key) or 'an empty text'} is not the name of a variable.")
    for key in headers:
        if not _HEADER.fullmatch(key):
            raise UsageError(f"{at}.headers: {visible(key) or 'an empty text'} is not the name of a header.")
    config = ServerConfig(name, command, tuple(args), env, cwd, url, headers, source)
    if url and "${" not in url:
        _check_url(url, at)
    return config, ignored


def expand(config: ServerConfig, environ: Mapping[str, str], withheld: Collection[str] = ()) -> ServerConfig:
    """The server with ``${VAR}`` and ``${VAR:-default}`` replaced from the environment. ``withheld`` are the
    variables with keys of model providers, which no server receives. Raises UsageError."""
    at = f"{config.source}: {config.name}" if config.source else f"The MCP server {config.name}"

    def value(found: re.Match[str]) -> str:
        name, default = found[1], found[2]
        if name in withheld:
            raise UsageError(
                f"{at} uses ${{{name}}}, the key of a model provider, which quoth gives to no server. Set a "
                "variable of another name."
            )
        if given := environ.get(name):
            return given
        if default is None:
            raise UsageError(f"{at} needs the variable {name}, which is not set. Type: export {name}=…")
        return default

    def filled(text: str) -> str:
        if foreign := _EDITOR_VARIABLE.search(text):
            raise UsageError(
                f"{at}: {visible(foreign[0])} is not supported; write ${{VAR}} or ${{VAR:-default}}."
            )
        return _VARIABLE.sub(value, text)

    done = replace(
        config,
        command=filled(config.command),
        args=tuple(map(filled, config.args)),
        env={key: filled(text) for key, text in config.env.items()},
        cwd=filled(config.cwd),
        url=filled(config.url),
        headers={key: filled(text) for key, text in config.headers.items()},
    )
    if done.url:
        _check_url(done.url, at)
    for key, text in done.headers.items():
        if not (text.isascii() and text.isprintable()):
            raise UsageError(f"{at}: the value of the header {key} must be printable ASCII on one line.")
    if "\0" in "".join((done.command, done.cwd, *done.args, *done.env.values())):
        raise UsageError(f"{at} contains a NUL character.")
    return done


def _check_url(url: str, at: str) -> None:
    """Raises UsageError, which never contains the URL: it may contain a secret."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        usable = False
    if not usable or not url.isascii() or not url.isprintable() or " " in url:
        raise UsageError(f"{at}: the url must be like https://example.org/mcp.")
    if parts.username is not None or parts.password is not None:
        raise UsageError(f"{at}: the url contains a user name or password; put credentials into headers.")


# Changes of the user's own file


def add_server(config: ServerConfig, *, replacing: bool = False) -> Path:
    """Add a server to the user's own file; returns its path. Raises UsageError, also if the name is taken."""
    path = user_servers()
    before = {} if is_missing(path) else _document(path)
    servers = before.setdefault(KEY, {})
    if (taken := _written_as(servers, config.name)) and not replacing:
        raise UsageError(
            f"{at_home(path)} has a server named {config.name}. To remove it: quoth mcp remove {config.name}"
        )
    said: dict[str, Any] = {"command": config.command} if config.command else {"url": config.url}
    said |= {"args": list(config.args)} if config.args else {}
    said |= {
        key: value
        for key, value in (("env", dict(config.env)), ("cwd", config.cwd), ("headers", dict(config.headers)))
        if value
    }
    read_servers({config.name: said}, at_home(path))
    servers[taken or config.name] = said
    _write(path, before)
    return path


def remove_server(name: str) -> Path | None:
    """Remove a server from the user's own file; returns its path, or None if it has no such server. Raises
    UsageError."""
    path = user_servers()
    if is_missing(path):
        return None
    document = _document(path)
    taken = _written_as(document[KEY], kebab(name))
    if taken is None:
        return None
    del document[KEY][taken]
    _write(path, document)
    return path


def _document(path: Path) -> dict[str, Any]:
    data = read_bytes(path, f"There is no file {path}.")
    parse(data, at_home(path))
    document: dict[str, Any] = json.loads(data.decode("utf-8-sig"))
    return document


def _written_as(servers: Mapping[str, Any], name: str) -> str | None:
    return next((one for one in servers if server_name(one) == name), None)


def _write(path: Path, document: Mapping[str, Any]) -> None:
    text = json.dumps(document, ensure_ascii=False, indent=2) + "\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        replace_file(path, [text.encode()], 0o600)  # a person may write a token into it
    except (OSError, UnicodeEncodeError) as error:
        raise UsageError(f"{path} cannot be written: {getattr(error, 'strerror', None) or error}.") from None


def _join(found: dict[str, ServerConfig], more: Servers, notes: list[str]) -> None:
    notes += more.notes
    for name, config in more.configs.items():
        if name not in found:
            found[name] = config
        elif replace(found[name], source="") != replace(config, source=""):
            notes.append(
                f"{config.source}: the server {name} is not used; that of {found[name].source} counts."
            )


class _TwiceError(ValueError):
    pass


def _unique(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise _TwiceError(key)
        found[key] = value
    return found


def _typed(value: Any, kind: type, at: str) -> Any:
    if not isinstance(value, kind):
        raise UsageError(f"{at} must be {_KINDS[kind]}, not {_KINDS.get(type(value), 'a number')}.")
    return value


def _texts(value: Any, at: str) -> list[str]:
    return [_typed(one, str, f"{at}[{place}]") for place, one in enumerate(_typed(value, list, at))]


def _mapping(value: Any, at: str) -> dict[str, str]:
    return {key: _typed(one, str, f"{at}.{visible(key)}") for key, one in _typed(value, dict, at).items()}
