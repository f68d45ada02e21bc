"""This machine's devices."""


def get_num_devices():
    """One, in name only."""
    return 1
