"""Doing it: ansible-runner, typed events, the journal."""
