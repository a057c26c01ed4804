"""Chats: many conversations in one process, each with its own session."""
