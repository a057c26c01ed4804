"""The commands of quoth, one file for each family."""
