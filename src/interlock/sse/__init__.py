"""A chat completion's server-sent events: read from bytes, their texts guarded, written as they came."""
