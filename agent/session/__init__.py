"""A session and its life: written, listed, shown, carried on."""
