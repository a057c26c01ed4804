"""Rules over calls: the language, its meaning, limits, trust."""
