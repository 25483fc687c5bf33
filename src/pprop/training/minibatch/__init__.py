"""Training on the PPR neighbourhoods of labelled nodes, in mini-batches: `train` in `training`."""
