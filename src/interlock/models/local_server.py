"""The process a local model runs in: llama.cpp's HTTP server on loopback, from the xllamacpp package.

``python local_server.py PORT --model FILE`` prints ``READY http://127.0.0.1:...`` once it listens, and ends
when its standard input ends or its parent is gone. It imports nothing of the library: it starts fast.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until the parent is gone.

    Args:
        arguments: the command line, ``sys.argv`` by default.
    """
    parent = os.getppid()
    threading.Thread(target=_end_with_input, daemon=True).start()
    server = _serve(_options(arguments))
    print("READY", server.listening_address, flush=True)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # nobody reads on: a full pipe would stop the server
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(0)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Serve a local model on loopback.")
    parser.add_argument("port", type=int, help="0 for a free one")
    parser.add_argument("--model", required=True, help="a GGUF file")
    parser.add_argument("--alias", default="local")
    parser.add_argument("--ctx", type=int, default=4096, help="tokens, shared by the requests under way")
    parser.add_argument("--parallel", type=int, default=4, help="requests at a time")
    parser.add_argument("--threads", type=int, default=2)
    return parser.parse_args(arguments)


def _serve(options: argparse.Namespace) -> Any:
    xllamacpp: Any = importlib.import_module("xllamacpp")
    params = xllamacpp.CommonParams()
    params.model.path = options.model
    params.model_alias = {options.alias}
    params.hostnames = ["127.0.0.1"]
    params.port = options.port
    params.n_ctx = options.ctx
    params.n_parallel = options.parallel
    params.kv_unified = True  # one long request may use the whole context, not just its slot's share
    params.cache_ram_mib = 256  # by default 8 GiB of old prompts
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = options.threads
    params.use_jinja = True
    params.warmup = False
    params.offline = True
    params.ui = False
    params.verbosity = 0
    return xllamacpp.Server(params)


def _end_with_input() -> None:
    while sys.stdin.buffer.read(1):
        pass
    os._exit(0)


if __name__ == "__main__":
    main()
