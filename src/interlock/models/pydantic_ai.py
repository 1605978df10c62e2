"""Any provider pydantic-ai knows: Anthropic, Gemini, OpenAI's Responses, Bedrock, Groq, Mistral, ...

Its ``Model.request_stream`` does the provider's protocol; its agent is not used.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, aclosing, suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from interlock.core.chunks import Chunk, Finish, ResponseMetadata, StepStart, Usage
from interlock.core.errors import ModelError, UsageError
from interlock.core.model import ModelRequest

if TYPE_CHECKING:
    from pydantic_ai.models import Model, StreamedResponse
    from pydantic_ai.native_tools import AbstractNativeTool

    from interlock.models.pydantic_ai_http import Exchange

INSTALL = "pip install 'interlock[providers]'"

FINISH_REASONS = {
    "stop": "stop",
    "length": "length",
    "tool_call": "tool-calls",
    "content_filter": "content-filter",
    "error": "error",
}


def pydantic_ai_model(
    name: str, *, native_tools: Sequence[AbstractNativeTool] = (), timeout: float = 300.0
) -> PydanticAIModel:
    """A model by its name.

    Args:
        name: ``provider/model`` with pydantic-ai's names of providers: ``anthropic/claude-sonnet-4-5``,
            ``google/gemini-2.5-pro``, ``openai/gpt-5`` (Responses), ``openai-chat/gpt-5``, ``bedrock/...``.
        native_tools: tools the provider runs itself, for example pydantic-ai's ``WebSearchTool()``.
        timeout: seconds of silence from the server until a call fails.

    Returns:
        The model. Nothing is called yet.

    Raises:
        UsageError: an unknown provider, a missing key or package; the text says what to do.
    """
    _need_extra(name)
    from interlock.models.pydantic_ai_names import ModelMaker

    maker = ModelMaker(name, timeout=timeout)
    return PydanticAIModel(maker.first, native_tools=native_tools, current=maker.current, close=maker.aclose)


class PydanticAIModel:
    """A pydantic-ai model as a language model.

    Args:
        model: the model. Request bodies and raw responses are there, and whatever else is secret in its requests is
            taken out of error texts with its key, if its provider was given an HTTP client through
            :func:`~interlock.models.pydantic_ai_http.observed`.
        native_tools: tools the provider runs itself.
        current: gives the model to use in the running event loop, by default ``model``: an HTTP client
            belongs to the loop it was first used in.
        close: closes what ``current`` opened.

    Raises:
        UsageError: no pydantic-ai model, or pydantic-ai is not installed.
    """

    def __init__(
        self,
        model: Model[Any],
        *,
        native_tools: Sequence[AbstractNativeTool] = (),
        current: Callable[[], Awaitable[Model[Any]]] | None = None,
        close: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        _need_extra(type(model).__name__)
        from pydantic_ai.models import Model

        if not isinstance(model, Model):
            raise UsageError(f"PydanticAIModel takes a pydantic-ai Model, not {type(model).__name__}")
        self._model = model
        self._native_tools = tuple(native_tools)
        self._current = current
        self._close = close

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.provider}/{self.model_id})"

    @property
    def provider(self) -> str:
        """pydantic-ai's name of the provider."""
        return self._model.system

    @property
    def model_id(self) -> str:
        """The model's name at that provider."""
        return self._model.model_name

    @property
    def has_native_schema(self) -> bool:
        """Whether the provider itself holds answers to a JSON schema."""
        from interlock.models.pydantic_ai_request import has_native_schema

        return has_native_schema(self._model)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
        """Call the model. Closing the generator hangs up at once.

        Args:
            request: what to ask; ``settings["max_retries"]`` is how often the provider's SDK tries again,
                ``settings["timeout"]`` how many seconds it may take altogether.

        Raises:
            ModelError: the provider refused, failed, broke off or answered something unreadable.
            UsageError: the request cannot be expressed.
        """
        from interlock.models.pydantic_ai_http import Exchange

        exchange = Exchange(keep_raw=request.wants_raw)
        try:
            async with aclosing(self._answer(request, exchange)) as chunks:
                async for chunk in chunks:
                    yield chunk
            return
        except Exception as problem:
            failure = self._failure(problem, exchange)
        raise failure  # out here, so that it is not chained to an error that holds the request and its key

    async def aclose(self) -> None:
        """Close this event loop's idle connections. A loop that shuts down properly does so by itself."""
        if self._close is not None:
            await self._close()

    async def _answer(self, request: ModelRequest, exchange: Exchange) -> AsyncGenerator[Chunk, None]:
        from interlock.models.pydantic_ai_errors import cut_off
        from interlock.models.pydantic_ai_request import build_call
        from interlock.models.pydantic_ai_stream import EventReader

        model = self._model if self._current is None else await self._current()
        call = build_call(model, request, self._native_tools)
        async with AsyncExitStack() as stack:
            with exchange.watch():
                streamed = await stack.enter_async_context(
                    model.request_stream(call.messages, call.settings, call.parameters)
                )
            stack.push_async_callback(_hang_up, streamed, exchange)
            yield StepStart(request=exchange.request_body, warnings=call.warnings)
            reader = EventReader(streamed)
            named = False
            async for event in streamed:
                quick = reader.quick(event)
                if quick is not None:
                    yield quick
                    continue
                if not named:
                    named = True
                    yield _response(streamed, exchange)
                for chunk in reader.read(event):
                    yield chunk
            if _is_cut_off(streamed, exchange):
                raise cut_off(_where(model), exchange.raw)
            for chunk in reader.end():
                yield chunk
            yield _response(streamed, exchange, with_raw=request.wants_raw)
            yield _finish(streamed, called=reader.called)

    def _failure(self, problem: Exception, exchange: Exchange) -> Exception:
        from interlock.models.openai_errors import unreadable_error
        from interlock.models.pydantic_ai_errors import as_interlock_error, cut_off
        from interlock.models.pydantic_ai_http import key_of

        where = _where(self._model)
        failure = as_interlock_error(problem, where=where)
        if not isinstance(failure, ModelError):
            return failure
        page = exchange.web_page
        if page is not None and failure.status is None:
            failure = unreadable_error(page.status, page.content_type, page.text, where=where)
        elif not failure.retryable and failure.status is None and exchange.ends_inside_an_event:
            failure = cut_off(where, exchange.raw)
        if not exchange.secrets and (key := key_of(self._model)):
            exchange.secrets = (key,)
        return exchange.without_secrets(failure)


async def _hang_up(streamed: StreamedResponse, exchange: Exchange) -> None:
    await exchange.aclose()  # Google's SDK leaves that to the garbage collector
    with suppress(NotImplementedError):  # a model without a connection
        await streamed.close_stream()


def _is_cut_off(streamed: StreamedResponse, exchange: Exchange) -> bool:
    """Whether the stream ended before its end: most of pydantic-ai's models take that for an answer."""
    details = streamed.provider_details or {}
    if details.get("finish_reason") or streamed.provider_url is None or exchange.ends_with_done:
        return False
    assumes_stop = "OpenAI" in type(streamed).__name__ and streamed.finish_reason == "stop"
    return streamed.finish_reason is None or assumes_stop


def _response(streamed: StreamedResponse, exchange: Exchange, *, with_raw: bool = False) -> ResponseMetadata:
    return ResponseMetadata(
        id=streamed.provider_response_id,
        model_id=streamed.model_name or None,
        timestamp=streamed.timestamp,
        headers=exchange.headers,
        raw=exchange.raw if with_raw else None,
    )


def _finish(streamed: StreamedResponse, *, called: bool) -> Finish:
    from interlock.models.pydantic_ai_metadata import QUOTES, plain

    used = streamed.usage
    details = streamed.provider_details or {}
    reason = FINISH_REASONS.get(streamed.finish_reason or "", "other" if details else "unknown")
    kept = {name: plain(value) for name, value in details.items() if name not in QUOTES - {"logprobs"}}
    if used.cache_write_tokens:
        kept["cacheWriteTokens"] = used.cache_write_tokens
    if used.details:
        kept["usageDetails"] = dict(used.details)
    return Finish(
        finish_reason="tool-calls" if called and reason == "stop" else reason,
        usage=Usage(
            input_tokens=used.input_tokens,
            output_tokens=used.output_tokens,
            total_tokens=used.input_tokens + used.output_tokens,
            reasoning_tokens=_reasoning_tokens(used.details),
            cached_input_tokens=used.cache_read_tokens,
        ),
        provider_metadata={streamed.provider_name or "model": kept} if kept else None,
    )


def _reasoning_tokens(details: dict[str, int]) -> int:
    return details.get("reasoning_tokens") or details.get("thoughts_tokens") or 0


def _where(model: Model[Any]) -> str:
    address = model.base_url
    return f"{model.system} at {address}" if address else model.system


def _need_extra(what: str) -> None:
    if find_spec("pydantic_ai") is None:
        raise UsageError(f"model {what!r}: pydantic-ai is not installed; run: {INSTALL}")
