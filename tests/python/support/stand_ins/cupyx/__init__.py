"""The parent of what stands in for cupyx."""
