"""Limits and requests for approval in Redis, shared by several machines."""
