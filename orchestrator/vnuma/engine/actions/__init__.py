"""The engine as Ansible's action plugins call it: JSON in, JSON out."""
