"""Consent: the requests that await a person's decision, and the decisions."""
