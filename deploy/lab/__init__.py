"""A cluster of local systemd containers to rehearse on."""
