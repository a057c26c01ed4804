"""Traces of a run: spans and metrics of what happened, for a file or for OpenTelemetry."""
