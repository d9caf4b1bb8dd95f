"""What docs/generate.py writes, one subject per module; each has ``outputs(root)``: files and their text."""
