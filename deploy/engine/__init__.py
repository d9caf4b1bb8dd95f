"""What deploy does on a site, as steps from values to values; each verb is a sequence of them."""
