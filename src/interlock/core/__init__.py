"""The pure core: messages, chunks, the processor protocol, the compiled pipeline and the loop.

Nothing in here does I/O, imports asyncio, reads a clock or draws a random number; the edges hand those in.
Import order, from the leaves up: errors, messages, chunks | message_list, prompt, tool | model | step, processor,
pipeline, run, loop (held by the import contracts in ``pyproject.toml``).
"""
