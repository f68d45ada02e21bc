"""Distributions with nvmath's names, over `hocket.distribution`."""

from ._base import BindDistributionError, ConvertDistributionError, Distribution
from ._blocks import BlockCyclic, BlockNonCyclic
from ._boxes import Box, Slab
from ._grid import ProcessGrid
from ._redistribute import Redistribute, RedistributeOptions, redistribute

__all__ = [
    "BindDistributionError",
    "BlockCyclic",
    "BlockNonCyclic",
    "Box",
    "ConvertDistributionError",
    "Distribution",
    "ProcessGrid",
    "Redistribute",
    "RedistributeOptions",
    "Slab",
    "redistribute",
]
