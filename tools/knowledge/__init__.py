"""The knowledge base: what people and their agent gathered, in Org files. Knows no chats and no models."""
