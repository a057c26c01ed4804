"""Which calls a program may make, found without making those that do more than read."""
