"""CuPy's tests ask whether NCCL is there."""

available = True
