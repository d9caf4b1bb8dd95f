"""``python -m deploy`` is the ``deploy`` command."""

from deploy.cli import main

main()
