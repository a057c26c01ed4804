"""A flight plan flown: steps, approvals, what each came to."""
