-- A store as the first version of the schema made it, with three calls in its audit.
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
INSERT INTO audit VALUES (1, 'a1b2c3d4e5', '2026-01-12T09:15:02.101+00:00', 's1', 'ann', 'call', NULL, 0, 0, 0, 'read-file', '2321718d3a68760f36a60f57c1ec3d8bd3d355062757cefb307de6c984415473', 'ok', 'body', 3, '[]');
INSERT INTO audit VALUES (2, 'b2c3d4e5f6', '2026-01-12T09:15:09.440+00:00', 's1', 'ann', 'call', NULL, 0, 0, 0, 'write-file', 'febf5848484fd715614d25a021bee8cd16d0f108c0c7c6d916fd52993a27901a', 'pending', 'consent', 1, '[]');
INSERT INTO audit VALUES (3, 'c3d4e5f6a7', '2026-01-13T18:40:51.007+00:00', 's2', 'ann', 'eval', NULL, 0, 0, 0, 'eval', '2e6e7849d5e561e568f5e061499edfbc6229a6a92b96c35240f858563f3fb6df', 'ok', 'body', 12, '[]');
PRAGMA user_version = 1;
