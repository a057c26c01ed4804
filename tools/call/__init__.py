"""A call, its result, and the context and services that a tool may use."""
