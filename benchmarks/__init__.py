"""Measurements that decide whether the speed is what it must be; see README.md in this directory."""
