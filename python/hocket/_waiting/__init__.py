"""Waits for pending calls: `await`, callbacks, and threads that are told of ends."""
