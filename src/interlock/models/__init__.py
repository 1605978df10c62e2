"""Models: what answers a prompt with a stream of chunks."""
