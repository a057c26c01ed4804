"""What a person was asked and what the person decided."""
