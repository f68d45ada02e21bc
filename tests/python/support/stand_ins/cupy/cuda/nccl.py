"""Tells CuPy's tests that NCCL is there."""

available = True
