"""What a model is shown: tools, JSON schemas, grammars, rules, in the dialect it speaks."""
