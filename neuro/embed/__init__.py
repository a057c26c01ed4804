"""Embedders: models that turn texts into vectors, behind one protocol (tools/call/services.py, Embedder)."""
