"""The prompt of a model: tools, JSON schemas, grammars and rules in its dialect."""
