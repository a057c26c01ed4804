"""Policy: rules about calls, how they are written, judged and trusted, and limits."""
