"""Cuts: the graph of a tape, its nested separators, and the links between them as a Jacobian chain."""
