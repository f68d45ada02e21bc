"""Support for arrays of any package: kinds, sparse arrays, redistribution, streaming onto GPUs."""
