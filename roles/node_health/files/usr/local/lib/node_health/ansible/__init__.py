"""Stands in for Ansible, which is not on the nodes, so that modules of its roles find each other here."""
