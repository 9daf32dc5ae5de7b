"""A model client for the agents: one JSON request, one answer, whole or streamed."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

import httpx


class ModelClient:
    """A client for a provider's HTTP API, configured by the same environment variables as the provider's SDK."""

    def __init__(self, provider: str, default_url: str) -> None:
        self.base_url = (os.environ.get(f"{provider}_BASE_URL") or default_url).rstrip("/")
        key = os.environ.get(f"{provider}_API_KEY") or "no-key"
        self._http = httpx.Client(headers={"authorization": f"Bearer {key}"}, timeout=60)

    def __enter__(self) -> ModelClient:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def ask(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Send a request; return the whole answer."""
        try:
            response = self._http.post(self.base_url + path, json=body)
        except httpx.HTTPError as error:
            raise self._unreachable(error) from error
        self._check(response)
        answer: dict[str, Any] = response.json()
        return answer

    def stream(self, path: str, body: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Send a request; yield the events of the answer as they arrive."""
        try:
            with self._http.stream("POST", self.base_url + path, json=body) as response:
                if response.is_error:
                    response.read()
                self._check(response)
                for line in response.iter_lines():
                    if line.startswith("data:") and (data := line.removeprefix("data:").strip()) != "[DONE]":
                        yield json.loads(data)
        except httpx.HTTPError as error:
            raise self._unreachable(error) from error

    def _check(self, response: httpx.Response) -> None:
        if response.is_error:
            raise ModelRefusal(f"the model at {self.base_url} refused ({response.status_code}): {_reason(response)}")

    def _unreachable(self, error: httpx.HTTPError) -> ModelRefusal:
        return ModelRefusal(f"no answer from the model at {self.base_url}: {error}")


class ModelRefusal(SystemExit):
    """The model sent an error or no answer. Ends the program with exit code 1 and the reason on stderr."""


def _reason(response: httpx.Response) -> str:
    try:
        return str(response.json()["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return response.text
