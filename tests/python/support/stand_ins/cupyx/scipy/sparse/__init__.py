"""cupyx.scipy.sparse: SciPy's."""

from scipy.sparse import *  # noqa: F403
