"""What the exit status of ansible-playbook says."""

# All done; something failed on a host; hosts did not answer (ansible/executor/task_queue_manager.py).
CAME_TO_ITS_END = frozenset({0, 2, 4})
