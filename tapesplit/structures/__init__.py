"""Structures: what of a tape a plan depends on, whether two tapes agree in it, and what follows from it."""
