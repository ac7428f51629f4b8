"""Sites on a Receptor mesh: a node's files, and requests to a node over the mesh."""
