"""A pydantic-ai model by its name, one for each event loop."""

from __future__ import annotations

import asyncio
import inspect
import os
import re
from collections.abc import AsyncGenerator
from typing import Any

import httpx
import httpx2
from pydantic_ai.exceptions import UserError
from pydantic_ai.models import Model, infer_model
from pydantic_ai.providers import Provider, infer_provider_class

from interlock.core.errors import UsageError
from interlock.models.pydantic_ai_http import make_client, observed

NAMES = {
    "gemini": "google",
    "google-gla": "google",
    "vertex": "google-cloud",
    "google-vertex": "google-cloud",
}
"""What others call pydantic-ai's providers."""

OUR_EXTRA = ("anthropic", "google", "openai")
OLDER_CLIENT = re.compile(r"(httpx\.)?AsyncClient\b")
"""How providers whose SDK still takes httpx's client annotate it; the others take httpx2's."""
VARIABLE = re.compile(r"`([A-Z][A-Z0-9_]*_[A-Z0-9_]+)`")

AnyClient = httpx.AsyncClient | httpx2.AsyncClient


class ModelMaker:
    """Makes the model of a name: the first at once, so that what is missing is told, others when needed.

    Args:
        name: ``provider/model``.
        timeout: seconds of silence from the server until a call fails.

    Attributes:
        first: the model made at once; it serves the first event loop that asks.

    Raises:
        UsageError: an unknown provider, a missing key or package.
    """

    def __init__(self, name: str, *, timeout: float) -> None:
        provider, slash, model_id = name.partition("/")
        if not (provider and slash and model_id):
            raise UsageError(
                f"model {name!r}: write provider/model, for example 'anthropic/claude-sonnet-4-5'"
            )
        self._name = name
        self._full = f"{NAMES.get(provider, provider)}:{model_id}"
        self._timeout = timeout
        self._open: dict[asyncio.AbstractEventLoop, tuple[Model[Any], AsyncGenerator[None, None]]] = {}
        self.first, self._client = self._make()
        self._is_first_free = True

    async def current(self) -> Model[Any]:
        """The running event loop's model."""
        loop = asyncio.get_running_loop()
        known = self._open.get(loop)
        if known is not None:
            return known[0]
        for other in [other for other in self._open if other.is_closed()]:
            self._open.pop(other, None)
        model, client = (self.first, self._client) if self._is_first_free else self._make()
        self._is_first_free = False
        closing = _close_at_shutdown(client)
        await anext(closing)
        self._open[loop] = (model, closing)
        return model

    async def aclose(self) -> None:
        """Close the running event loop's connections."""
        opened = self._open.pop(asyncio.get_running_loop(), None)
        if opened is not None:
            await opened[1].aclose()

    def _make(self) -> tuple[Model[Any], AnyClient | None]:
        clients: list[AnyClient] = []

        def provider(name: str) -> Provider[Any]:
            kind = infer_provider_class(name)
            options: dict[str, Any] = _address_for(kind, self._name)
            client = _client_for(kind, self._timeout)
            if client is not None:
                clients.append(client)
                options["http_client"] = client
            return kind(**options)

        try:
            infer_provider_class(self._full.partition(":")[0])
            model = infer_model(self._full, provider_factory=provider)
        except ValueError:
            raise UsageError(
                f"model {self._name!r}: no provider {self._name.partition('/')[0]!r} in pydantic-ai"
            ) from None
        except UserError as problem:
            raise UsageError(_explained(self._name, str(problem))) from None
        except ImportError as problem:
            raise UsageError(f"model {self._name!r}: {_install(self._full)} ({problem})") from None
        return model, clients[0] if clients else None


def _client_for(kind: type[Provider[Any]], timeout: float) -> AnyClient | None:
    """An observed HTTP client of the library this provider's SDK uses; None if it takes none."""
    parameter = inspect.signature(kind).parameters.get("http_client")
    if parameter is None:
        return None
    if OLDER_CLIENT.match(str(parameter.annotation)):
        return observed(httpx.AsyncClient(timeout=timeout))
    return make_client(timeout=timeout)


def _address_for(kind: type[Provider[Any]], name: str) -> dict[str, str]:
    """Another address, if there is one in ``ANTHROPIC_BASE_URL`` and so on; some SDKs look there by themselves."""
    variable = name.partition("/")[0].upper().replace("-", "_") + "_BASE_URL"
    address = os.environ.get(variable, "").strip()
    return {"base_url": address} if address and "base_url" in inspect.signature(kind).parameters else {}


async def _close_at_shutdown(client: AnyClient | None) -> AsyncGenerator[None, None]:
    try:
        yield
    finally:
        if client is not None:
            await client.aclose()


def _explained(name: str, said: str) -> str:
    variable = VARIABLE.search(said)
    if variable and "environment variable" in said:
        what = "API key" if "KEY" in variable[1] else "value"
        return f"model {name!r}: the environment variable {variable[1]} is not set; put the {what} there"
    return f"model {name!r}: {said}"


def _install(full: str) -> str:
    provider = full.partition(":")[0]
    if provider.partition("-")[0] in OUR_EXTRA:
        return "its package is not installed; run: pip install 'interlock[providers]'"
    return f"its package is not installed; run: pip install 'pydantic-ai-slim[{provider}]'"
