"""What a machine is checked for before anything on it changes; one module per subject, used by host_check."""
