"""The packages of arrays that these tests use: CuPy or PyTorch."""

import importlib


def count_gpus(package):
    """Returns how many GPUs `package` finds; 0 without the package or a driver."""
    try:
        xp = importlib.import_module(package)
        return xp.cuda.device_count() if package == "torch" else xp.cuda.runtime.getDeviceCount()
    except Exception:  # each package has its own
        return 0
