"""Execution: the coordinator of a plan, and the threads of its machines."""
