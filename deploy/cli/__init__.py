"""The ``deploy`` command: one module per verb; only ``main`` exits."""

from deploy.cli.app import main

__all__ = ["main"]
