"""Evaluations: recorded sessions as test cases of models, with figures that say how sure they are."""
