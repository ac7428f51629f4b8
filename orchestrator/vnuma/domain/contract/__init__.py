"""What a belief of a server is, and what came of asking one."""
