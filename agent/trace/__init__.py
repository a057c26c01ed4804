"""Traces of a run: its spans and metrics, for a file or for OpenTelemetry."""
