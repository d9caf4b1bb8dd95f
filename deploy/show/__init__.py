"""Showing it: live, plain, JSON lines, report."""
