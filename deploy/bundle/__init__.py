"""What a site fetches, in one directory: a cluster is deployed from it where there is no other network."""
