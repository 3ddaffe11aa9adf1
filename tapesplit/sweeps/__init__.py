"""Sweeps: carry all directions through a link, by array steps, as a sparse system, or in stages."""
