"""What a run will do: the phases of a cluster, crossed with a site."""
