"""deploy: a GPU cluster from an Ansible inventory, over ansible-runner."""

__version__ = "0.2.0"
