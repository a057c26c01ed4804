"""The SQLite file of a workspace, paths of our own state, locks, files replaced whole, bytes decompressed."""
