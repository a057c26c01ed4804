"""The knowledge base: sources, claims, learnings and notes of people and their agent, in Org files."""
