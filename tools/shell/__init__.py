"""Programs that run inside a boundary of the kernel: bubblewrap or Landlock."""
