"""Plugins that Ansible loads by path; nothing here is imported."""
