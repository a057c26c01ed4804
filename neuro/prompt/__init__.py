"""What a model is shown: belt, schemas, grammar, dialects."""
