"""Write a rule's fix for the reader's tool: Terraform, Ansible, PowerCLI, govc (pure)."""
