"""Durable records: transcript, receipts and audit."""
