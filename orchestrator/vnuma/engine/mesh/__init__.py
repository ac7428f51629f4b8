"""Sites on a Receptor mesh: a node's files, and questions to a node over the mesh."""
