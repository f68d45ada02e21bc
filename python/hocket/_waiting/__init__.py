"""Waiting for calls under way: `await`, callbacks, and the threads that hear of ends."""
