"""What is noted of a call's traffic."""

from __future__ import annotations

import asyncio
import gzip
from typing import Any

import httpx
import httpx2
import pytest
from fault_server import FaultServer, chunked, whole
from hypothesis import given
from hypothesis import strategies as st

from interlock.core.errors import ModelError
from interlock.models.pydantic_ai_http import Exchange, make_client, observed

pytestmark = pytest.mark.anyio


async def test_a_call_sees_its_own_traffic_and_no_other() -> None:
    """Calls at once on one client: each exchange has its own request and response."""

    async def call(number: int) -> tuple[int, Exchange]:
        exchange = Exchange()
        with exchange.watch():
            await client.post(server.base_url, json={"n": number})
        return number, exchange

    scripts = [[0.01, whole(b"data: x\n\n")] for _ in range(10)]
    async with FaultServer(*scripts) as server, make_client() as client:
        for number, exchange in await asyncio.gather(*(call(n) for n in range(10))):
            assert exchange.request_body == {"n": number}
            assert exchange.raw == "data: x\n\n"


@pytest.mark.parametrize("library", [httpx, httpx2], ids=["httpx", "httpx2"])
async def test_both_libraries_clients_can_be_observed(library: Any) -> None:
    """Providers differ in which library their SDK takes. Observing twice notes once."""
    async with FaultServer([chunked(b"a", b"b")]) as server, library.AsyncClient() as client:
        exchange = Exchange()
        with exchange.watch():
            response = await observed(observed(client)).post(server.base_url, json=[1])
        assert (response.text, exchange.raw) == ("ab", "ab")
        assert len(client.event_hooks["request"]) == 1


async def test_without_a_call_under_way_nothing_is_noted() -> None:
    """A client the user shares with other code stays as it was."""
    async with FaultServer([whole(b"x")]) as server, make_client() as client:
        assert (await client.post(server.base_url, json={})).text == "x"


async def test_a_compressed_body_is_shown_as_text() -> None:
    """The raw response is what the provider said, not how it was packed."""
    packed = gzip.compress("data: é\n\n".encode())
    async with FaultServer([whole(packed, content_encoding="gzip")]) as server, make_client() as client:
        exchange = Exchange()
        with exchange.watch():
            await client.post(server.base_url, json={})
    assert exchange.raw == "data: é\n\n"
    assert exchange.status == 200


async def test_cookies_and_keys() -> None:
    """A response's cookies are not kept; a request's keys are known, wherever they are, to be taken out."""
    headers = {
        "Authorization": "Bearer sk-0123456789",
        "x-api-key": "another-0123456789",
        "x-goog-api-key": "k" * 9,
    }
    async with FaultServer([whole(b"x", set_cookie="a=b")]) as server, make_client() as client:
        exchange = Exchange()
        with exchange.watch():
            await client.post(f"{server.base_url}?key=in-the-address&alt=sse", json={}, headers=headers)
    assert exchange.headers is not None
    assert "set-cookie" not in exchange.headers
    for secret in ("sk-0123456789", "another-0123456789", "k" * 9, "in-the-address"):
        problem = exchange.without_secrets(ModelError(f"bad {secret}!", body=f"[{secret}]"))
        assert secret not in f"{problem} {problem.body} {problem.args}"


@given(st.text(min_size=8, alphabet=st.characters(codec="ascii", exclude_categories=["C", "Z"])), st.text())
def test_no_secret_survives(secret: str, around: str) -> None:
    """Whatever key a request carries, no error text has it."""
    exchange = Exchange()
    exchange.note_request(httpx2.Request("POST", "http://h/", headers={"x-api-key": secret}, json={}))
    problem = exchange.without_secrets(ModelError(around + secret + around, body=secret + around))
    assert secret not in problem.message.replace("[redacted]", " ")
    assert secret not in (problem.body or "").replace("[redacted]", " ")
