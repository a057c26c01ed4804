"""The one door that every call passes."""
