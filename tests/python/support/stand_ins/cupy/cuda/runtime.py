"""Functions of CUDA's runtime that programs call."""


def getDeviceCount():
    """Devices in name only, as many as programs for a few want."""
    return 4
