"""The tables of the store: the schema of release 0.1.0, and one migration for each change since."""

from typing import Final

FIRST: Final = 29  # the number of SCHEMA in ``PRAGMA user_version``; stores of lower numbers are refused
SCHEMA: Final = """
CREATE TABLE audit (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    ts TEXT NOT NULL,
    session TEXT NOT NULL,
    user TEXT NOT NULL,
    route TEXT NOT NULL,
    parent TEXT,
    depth INTEGER NOT NULL,
    round INTEGER NOT NULL,
    place INTEGER NOT NULL,
    tool TEXT NOT NULL,
    digest TEXT NOT NULL,
    status TEXT NOT NULL,
    stage TEXT NOT NULL,
    duration_ms INTEGER NOT NULL,
    side_effects TEXT NOT NULL,
    policy TEXT NOT NULL DEFAULT '',
    rule TEXT NOT NULL DEFAULT '',
    guard TEXT NOT NULL DEFAULT '',
    gate TEXT NOT NULL DEFAULT '',
    consent TEXT NOT NULL DEFAULT '',
    message TEXT NOT NULL DEFAULT '',
    form TEXT NOT NULL DEFAULT '',
    schema_hash TEXT NOT NULL DEFAULT '',
    prev TEXT NOT NULL DEFAULT '',
    hash TEXT NOT NULL DEFAULT '',
    repairs TEXT NOT NULL DEFAULT '',
    confidence REAL,
    event INTEGER,
    event_digest TEXT NOT NULL DEFAULT '',
    said TEXT NOT NULL DEFAULT '',
    details TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX audit_session ON audit (session, seq);
CREATE INDEX audit_tool ON audit (tool, seq);
CREATE INDEX audit_day ON audit (substr(ts, 1, 10), tool, status, duration_ms);
CREATE TABLE uses (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    tool TEXT NOT NULL,
    user TEXT NOT NULL,
    session TEXT NOT NULL,
    call TEXT NOT NULL,
    at REAL NOT NULL,
    begun REAL
) STRICT;
CREATE INDEX uses_at ON uses (tool, at);
CREATE INDEX uses_begun ON uses (tool, coalesce(begun, at));
CREATE TABLE audit_head (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    seq INTEGER NOT NULL,
    hash TEXT NOT NULL
) STRICT;
INSERT INTO audit_head VALUES (1, 0, '');
CREATE TABLE requests (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    digest TEXT NOT NULL,
    tool TEXT NOT NULL,
    version TEXT NOT NULL,
    form TEXT NOT NULL,
    shown TEXT NOT NULL,
    reason TEXT NOT NULL,
    touches TEXT NOT NULL,
    user TEXT NOT NULL,
    session TEXT NOT NULL,
    route TEXT NOT NULL,
    call TEXT NOT NULL,
    parent TEXT,
    message TEXT NOT NULL,
    rule TEXT NOT NULL,
    asked REAL NOT NULL,
    expires REAL NOT NULL,
    state TEXT NOT NULL,
    decision TEXT NOT NULL DEFAULT '',
    decided REAL,
    decider TEXT NOT NULL DEFAULT '',
    why TEXT NOT NULL DEFAULT '',
    edited TEXT NOT NULL DEFAULT '',
    used REAL,
    used_by TEXT NOT NULL DEFAULT '',
    channel TEXT NOT NULL DEFAULT '',
    origins TEXT NOT NULL DEFAULT '',
    files TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX requests_digest ON requests (digest, state);
CREATE INDEX requests_rule ON requests (tool, rule);
CREATE INDEX requests_used_by ON requests (used_by);
CREATE INDEX requests_session ON requests (session, user);
CREATE TABLE grants (
    seq INTEGER PRIMARY KEY,
    request TEXT NOT NULL,
    digest TEXT NOT NULL,
    tool TEXT NOT NULL,
    rule TEXT NOT NULL,
    user TEXT NOT NULL,
    session TEXT NOT NULL,
    granter TEXT NOT NULL,
    granted REAL NOT NULL,
    expires REAL NOT NULL
) STRICT;
CREATE INDEX grants_session ON grants (session, tool);
CREATE INDEX grants_request ON grants (request);
CREATE TABLE receipts (
    seq INTEGER PRIMARY KEY,
    key TEXT NOT NULL,
    session TEXT NOT NULL,
    message TEXT NOT NULL,
    digest TEXT NOT NULL,
    version TEXT NOT NULL,
    call TEXT NOT NULL,
    at REAL NOT NULL,
    repeats INTEGER NOT NULL,
    changed INTEGER NOT NULL,
    status TEXT NOT NULL,
    result TEXT NOT NULL,
    event INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX receipts_key ON receipts (key);
CREATE INDEX receipts_session ON receipts (session, digest);
CREATE TABLE snapshots (
    name TEXT PRIMARY KEY,
    session TEXT NOT NULL,
    at REAL NOT NULL,
    state BLOB NOT NULL
) STRICT;
CREATE TABLE plans (
    request TEXT PRIMARY KEY,
    program TEXT NOT NULL,
    shapes TEXT NOT NULL,
    text TEXT NOT NULL
) STRICT;
CREATE INDEX plans_program ON plans (program);
CREATE TABLE events (
    session TEXT NOT NULL,
    seq INTEGER NOT NULL,
    at TEXT NOT NULL,
    run TEXT NOT NULL,
    kind TEXT NOT NULL,
    parent INTEGER NOT NULL,
    key TEXT NOT NULL,
    form TEXT NOT NULL,
    shown TEXT,
    digest TEXT NOT NULL,
    status TEXT NOT NULL,
    PRIMARY KEY (session, seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX events_begin ON events (session, kind) WHERE kind IN ('session', 'stimulus', 'end');
CREATE INDEX events_secret ON events (session) WHERE shown IS NOT NULL;
CREATE INDEX events_flight ON events (session) WHERE kind = 'flight';
CREATE INDEX events_begun ON events (session, key, run) WHERE kind = 'stimulus';
CREATE INDEX events_run ON events (session, run, seq, kind, key, status, at);
CREATE TABLE texts (
    session TEXT NOT NULL,
    user TEXT NOT NULL,
    id TEXT NOT NULL,
    at REAL NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (session, user, id)
) STRICT;
CREATE TABLE imported (
    session TEXT PRIMARY KEY,
    events INTEGER NOT NULL
) STRICT;
CREATE TABLE plan_steps (
    seq INTEGER PRIMARY KEY,
    plan TEXT NOT NULL,
    step TEXT NOT NULL,
    digest TEXT NOT NULL,
    tools TEXT NOT NULL,
    decision TEXT NOT NULL,
    user TEXT NOT NULL,
    at REAL NOT NULL,
    why TEXT NOT NULL,
    body TEXT NOT NULL DEFAULT '',
    seen TEXT NOT NULL DEFAULT '[]'
) STRICT;
CREATE INDEX plan_steps_plan ON plan_steps (plan, step);
CREATE TABLE blocks (
    id INTEGER PRIMARY KEY,
    agent TEXT NOT NULL,
    label TEXT NOT NULL,
    kind TEXT NOT NULL,
    permission TEXT NOT NULL,
    description TEXT NOT NULL,
    text TEXT NOT NULL,
    size INTEGER NOT NULL,
    version INTEGER NOT NULL,
    created TEXT NOT NULL,
    updated TEXT NOT NULL,
    writer TEXT NOT NULL,
    UNIQUE (agent, label)
) STRICT;
CREATE INDEX blocks_kind ON blocks (agent, kind, label) WHERE kind != 'archival';
CREATE TABLE block_versions (
    block INTEGER NOT NULL,
    version INTEGER NOT NULL,
    head INTEGER NOT NULL,
    tail INTEGER NOT NULL,
    middle TEXT NOT NULL,
    at TEXT NOT NULL,
    writer TEXT NOT NULL,
    PRIMARY KEY (block, version)
) STRICT, WITHOUT ROWID;
CREATE TABLE block_shares (
    block INTEGER NOT NULL,
    agent TEXT NOT NULL,
    permission TEXT NOT NULL,
    PRIMARY KEY (agent, block)
) STRICT, WITHOUT ROWID;
CREATE TABLE passages (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    block INTEGER NOT NULL DEFAULT 0,
    session INTEGER NOT NULL DEFAULT 0,
    seq INTEGER NOT NULL DEFAULT 0,
    start INTEGER NOT NULL,
    length INTEGER NOT NULL,
    user TEXT NOT NULL DEFAULT '',
    at TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX passages_block ON passages (block) WHERE block != 0;
CREATE INDEX passages_session ON passages (session, seq) WHERE session != 0;
CREATE VIRTUAL TABLE passage_words USING fts5 (
    text, about, near, far, content = '', contentless_delete = 1, tokenize = 'porter unicode61'
);
CREATE TABLE passage_vectors (
    passage INTEGER PRIMARY KEY,
    model INTEGER NOT NULL,
    vector BLOB NOT NULL
) STRICT;
CREATE TABLE vector_models (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL,
    dimensions INTEGER NOT NULL,
    upto INTEGER NOT NULL
) STRICT;
CREATE TABLE indexed_sessions (
    id INTEGER PRIMARY KEY,
    session TEXT NOT NULL UNIQUE,
    seq INTEGER NOT NULL
) STRICT;
CREATE TABLE unindexed_blocks (block INTEGER PRIMARY KEY) STRICT;
CREATE TABLE inbox (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    chat TEXT NOT NULL,
    id TEXT NOT NULL,
    user TEXT NOT NULL,
    text TEXT NOT NULL,
    state TEXT NOT NULL,
    told TEXT NOT NULL DEFAULT '[]',
    lines TEXT NOT NULL DEFAULT '',
    at REAL NOT NULL,
    UNIQUE (chat, id)
) STRICT;
CREATE INDEX inbox_unfinished ON inbox (seq) WHERE state != 'answered';
CREATE INDEX inbox_lines ON inbox (chat) WHERE lines != '';
CREATE TABLE shared_turns (
    request TEXT PRIMARY KEY,
    turn INTEGER NOT NULL,
    at REAL NOT NULL
) STRICT;
CREATE TABLE spending (
    user TEXT NOT NULL,
    at INTEGER NOT NULL,
    requests INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    cost REAL NOT NULL,
    PRIMARY KEY (user, at)
) STRICT, WITHOUT ROWID;
CREATE TABLE contents (
    sha256 TEXT PRIMARY KEY,
    size INTEGER NOT NULL,
    used INTEGER NOT NULL,
    stored INTEGER NOT NULL,
    data BLOB NOT NULL
) STRICT;
CREATE INDEX contents_used ON contents (used, stored);
CREATE TABLE writes (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    session TEXT NOT NULL,
    event INTEGER NOT NULL,
    key TEXT NOT NULL,
    tool TEXT NOT NULL,
    user TEXT NOT NULL,
    at REAL NOT NULL,
    path TEXT NOT NULL,
    before TEXT,
    after TEXT,
    mode INTEGER NOT NULL,
    folders INTEGER NOT NULL,
    act TEXT NOT NULL DEFAULT '',
    back INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX writes_session ON writes (session, seq);
CREATE INDEX writes_before ON writes (before);
CREATE TABLE checkpoints (
    session TEXT NOT NULL,
    run TEXT NOT NULL,
    seq INTEGER NOT NULL,
    digest TEXT NOT NULL,
    format INTEGER NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (session, run, seq)
) STRICT;
CREATE TRIGGER passages_removed AFTER DELETE ON passages BEGIN
    DELETE FROM passage_words WHERE rowid = old.id;
    DELETE FROM passage_vectors WHERE passage = old.id;
END;
CREATE TRIGGER blocks_added AFTER INSERT ON blocks BEGIN
    INSERT OR IGNORE INTO unindexed_blocks VALUES (new.id);
END;
CREATE TRIGGER blocks_changed AFTER UPDATE OF label, description, text ON blocks
WHEN (new.label, new.description, new.text) IS NOT (old.label, old.description, old.text) BEGIN
    INSERT OR IGNORE INTO unindexed_blocks VALUES (new.id);
END;
CREATE TRIGGER blocks_removed AFTER DELETE ON blocks BEGIN
    DELETE FROM passages WHERE block = old.id AND block != 0;
    DELETE FROM unindexed_blocks WHERE block = old.id;
END;
CREATE TRIGGER events_removed AFTER DELETE ON events WHEN old.kind IN ('stimulus', 'reply') BEGIN
    DELETE FROM passages WHERE session != 0 AND seq = old.seq
        AND session = (SELECT id FROM indexed_sessions WHERE session = old.session);
END;
"""
# Each entry brings the schema from FIRST + n to FIRST + n + 1; an entry is never edited once released.
MIGRATIONS: Final[tuple[str, ...]] = (
    """
CREATE TABLE served (
    key TEXT NOT NULL,
    history TEXT NOT NULL,
    session TEXT NOT NULL,
    events INTEGER NOT NULL,
    ended INTEGER NOT NULL,
    at REAL NOT NULL,
    PRIMARY KEY (key, history)
) STRICT, WITHOUT ROWID;
CREATE INDEX served_session ON served (session, events);
""",
    """
CREATE TABLE occurrences (
    plan TEXT NOT NULL,
    at TEXT NOT NULL,
    session TEXT NOT NULL,
    state TEXT NOT NULL,
    PRIMARY KEY (plan, at)
) STRICT, WITHOUT ROWID;
""",
    # The last event of each session, kept by triggers.
    """
CREATE TABLE session_ends (
    session TEXT PRIMARY KEY,
    seq INTEGER NOT NULL,
    at TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX session_ends_at ON session_ends (at, session);
INSERT INTO session_ends SELECT session, max(seq), at FROM events GROUP BY session;
CREATE TRIGGER events_end AFTER INSERT ON events BEGIN
    INSERT INTO session_ends VALUES (new.session, new.seq, new.at) ON CONFLICT (session)
        DO UPDATE SET seq = excluded.seq, at = excluded.at WHERE excluded.seq >= session_ends.seq;
END;
CREATE TRIGGER events_end_moved AFTER UPDATE OF at ON events BEGIN
    UPDATE session_ends SET at = new.at WHERE session = new.session AND seq = new.seq;
END;
CREATE TRIGGER events_end_removed AFTER DELETE ON events
WHEN EXISTS (SELECT 1 FROM session_ends WHERE session = old.session AND seq = old.seq) BEGIN
    DELETE FROM session_ends WHERE session = old.session;
    INSERT INTO session_ends SELECT session, seq, at FROM events WHERE session = old.session
        ORDER BY seq DESC LIMIT 1;
END;
""",
)
