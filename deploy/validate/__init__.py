"""The result on a cluster: what is measured, what it is held against, and what that means."""
