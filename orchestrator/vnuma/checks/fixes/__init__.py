"""A rule's fix in the language of a reader's tool: Terraform, Ansible, PowerCLI, govc (pure)."""
