"""Side by side with the peers: every figure is a ratio taken in one run."""
