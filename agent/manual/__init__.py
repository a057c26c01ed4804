"""The manual: pages in Org, and how they are found, read and shown."""
