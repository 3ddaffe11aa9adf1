"""The runtime cost model and the constants of this machine."""
