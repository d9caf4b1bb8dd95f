"""What the program shares with the modules of roles."""
