"""The user's settings: config.hy, read as data and never evaluated."""
