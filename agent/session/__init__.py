"""The life of a session: it is recorded, listed, shown, resumed and turned into a program."""
