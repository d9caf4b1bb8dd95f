"""One Ansible for all the playbooks that a program plays: it imports once and keeps its connections."""
