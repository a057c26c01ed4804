"""Keeps data on disk: the workspace's SQLite file, locks, atomic writes; and inflates HTTP replies."""
