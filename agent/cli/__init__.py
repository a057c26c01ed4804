"""The commands of quoth, one file a family."""
