"""Chats: many conversations in one process, each with its own session. Knows runs, and no command line."""
