"""What programs ask CUDA's runtime."""


def getDeviceCount():
    """Devices in name only, as many as programs for a few want."""
    return 4
