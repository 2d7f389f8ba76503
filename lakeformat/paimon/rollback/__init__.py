"""Going back to an earlier state: as a new snapshot, or by taking newer ones out of history."""
