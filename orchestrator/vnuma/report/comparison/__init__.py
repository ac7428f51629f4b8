"""Two runs side by side: what must agree, what differs, what changed, and what a pipeline makes of it."""
