"""Programs that run inside a boundary of the kernel: bubblewrap or Landlock. Knows no door and no models."""
