"""The tools that ship, one Hy file a family. Importing this package registers them in the global table."""

from importlib import import_module

from tools import hycache

FAMILIES = ("core", "files", "search")

hycache.install()
for family in FAMILIES:
    import_module(f"{__name__}.{family}")
