"""Programs that are sent to hosts as text and run there with the standard library of Python 3.9 alone."""
