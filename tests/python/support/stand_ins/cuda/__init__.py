"""The parent of what stands in for cuda.core."""
