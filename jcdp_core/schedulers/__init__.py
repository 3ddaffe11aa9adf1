"""Schedulers of one given elimination sequence."""
