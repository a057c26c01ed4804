"""Which tools there are, how one is defined, and what its parameters take."""
