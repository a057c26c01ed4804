"""What happened, durably: transcript, receipts, audit."""
