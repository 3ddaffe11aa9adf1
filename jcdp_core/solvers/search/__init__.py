"""Search: the parts of the exact solver, which the heuristic uses, too."""
