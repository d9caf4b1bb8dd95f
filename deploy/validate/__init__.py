"""The result on a cluster: what is measured, what it is compared with, and what that means."""
