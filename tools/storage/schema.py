"""The tables of the store, as one migration for each version of its schema.

Knows SQL only; it must not know what the tables mean.
"""

from typing import Final

# Each entry brings the schema from version n to n + 1; entries are never edited once released.
MIGRATIONS: Final[tuple[str, ...]] = (
    """
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
        side_effects TEXT NOT NULL
    ) STRICT;
    CREATE INDEX audit_session ON audit (session, seq);
    """,
    """
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
    """,
    """
    ALTER TABLE audit ADD COLUMN policy TEXT NOT NULL DEFAULT '';
    ALTER TABLE audit ADD COLUMN rule TEXT NOT NULL DEFAULT '';
    ALTER TABLE audit ADD COLUMN guard TEXT NOT NULL DEFAULT '';
    ALTER TABLE audit ADD COLUMN gate TEXT NOT NULL DEFAULT '';
    ALTER TABLE audit ADD COLUMN consent TEXT NOT NULL DEFAULT '';
    ALTER TABLE audit ADD COLUMN message TEXT NOT NULL DEFAULT '';
    ALTER TABLE audit ADD COLUMN form TEXT NOT NULL DEFAULT '';
    ALTER TABLE audit ADD COLUMN schema_hash TEXT NOT NULL DEFAULT '';
    ALTER TABLE audit ADD COLUMN prev TEXT NOT NULL DEFAULT '';
    ALTER TABLE audit ADD COLUMN hash TEXT NOT NULL DEFAULT '';
    CREATE TABLE audit_head (
        id INTEGER PRIMARY KEY CHECK (id = 1),
        seq INTEGER NOT NULL,
        hash TEXT NOT NULL
    ) STRICT;
    INSERT INTO audit_head VALUES (1, 0, '');
    """,
    """
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
        used_by TEXT NOT NULL DEFAULT ''
    ) STRICT;
    CREATE INDEX requests_digest ON requests (digest, state);
    CREATE INDEX requests_rule ON requests (tool, rule);
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
        result TEXT NOT NULL
    ) STRICT;
    CREATE INDEX receipts_key ON receipts (key);
    CREATE INDEX receipts_session ON receipts (session, digest);
    CREATE TABLE suspended (
        session TEXT NOT NULL,
        user TEXT NOT NULL,
        at REAL NOT NULL,
        state TEXT NOT NULL,
        PRIMARY KEY (session, user)
    ) STRICT;
    ALTER TABLE audit ADD COLUMN repairs TEXT NOT NULL DEFAULT '';
    """,
    """
    CREATE TABLE snapshots (
        name TEXT PRIMARY KEY,
        session TEXT NOT NULL,
        at REAL NOT NULL,
        state BLOB NOT NULL
    ) STRICT;
    """,
    """
    CREATE TABLE sub_agents (
        key TEXT PRIMARY KEY,
        digest TEXT NOT NULL,
        at REAL NOT NULL,
        state TEXT NOT NULL
    ) STRICT;
    """,
    """
    CREATE TABLE plans (
        request TEXT PRIMARY KEY,
        program TEXT NOT NULL,
        shapes TEXT NOT NULL,
        text TEXT NOT NULL
    ) STRICT;
    CREATE INDEX plans_program ON plans (program);
    CREATE INDEX requests_used_by ON requests (used_by);
    """,
    """
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
    DROP TABLE suspended;
    DROP TABLE sub_agents;
    """,
    """
    CREATE TABLE texts (
        session TEXT NOT NULL,
        user TEXT NOT NULL,
        id TEXT NOT NULL,
        at REAL NOT NULL,
        text TEXT NOT NULL,
        PRIMARY KEY (session, user, id)
    ) STRICT;
    """,
    """
    CREATE TABLE imported (
        session TEXT PRIMARY KEY,
        events INTEGER NOT NULL
    ) STRICT;
    """,
    """
    CREATE TABLE plan_steps (
        seq INTEGER PRIMARY KEY,
        plan TEXT NOT NULL,
        step TEXT NOT NULL,
        digest TEXT NOT NULL,
        tools TEXT NOT NULL,
        decision TEXT NOT NULL,
        user TEXT NOT NULL,
        at REAL NOT NULL,
        why TEXT NOT NULL
    ) STRICT;
    CREATE INDEX plan_steps_plan ON plan_steps (plan, step);
    CREATE INDEX events_flight ON events (session) WHERE kind = 'flight';
    """,
    """
    ALTER TABLE plan_steps ADD COLUMN body TEXT NOT NULL DEFAULT '';
    """,
    """
    ALTER TABLE plan_steps ADD COLUMN seen TEXT NOT NULL DEFAULT '[]';
    """,
    """
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
    """,
    """
    ALTER TABLE requests ADD COLUMN channel TEXT NOT NULL DEFAULT '';
    """,
)
