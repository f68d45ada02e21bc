"""Epilogs of products by nvmath's names, on GPUs' arrays; each rank has a GPU, or all share one.
``python epilogs_on_gpus.py PACKAGE``, under hocket run. PACKAGE is cupy or torch.
"""

import importlib
import sys
from pathlib import Path

import hocket
from hocket.compat import nvmath_distributed as nvd

PYTHON = Path(__file__).parents[1] / "python"
sys.path[:0] = [str(PYTHON / "faces"), str(PYTHON / "support")]
from test_nvmath_epilogs import every_epilog  # noqa: E402

package = sys.argv[1]
xp = importlib.import_module(package)
world = hocket.init()
gpus = xp.cuda.device_count() if package == "torch" else xp.cuda.runtime.getDeviceCount()
gpu = world.rank % gpus
xp.cuda.set_device(gpu) if package == "torch" else xp.cuda.Device(gpu).use()
nvd.initialize(gpu, nvd.HocketProcessGroup(world), ["nvshmem"])
group = nvd.get_context().process_group
for kind, dtype in (("rows", "float64"), ("columns", "float32"), ("cyclic", "float32"),
                    ("rows", "float16")):
    every_epilog(group, kind, dtype, "torch.cuda" if package == "torch" else package)
nvd.finalize()
print("done")
