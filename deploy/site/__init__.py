"""What the admin wrote: inventory, variables, secrets, hardware contract."""
