"""Arrays of any package, and what is done with them: kinds, sparse ones, redistribution, streams onto GPUs."""
