"""What the agents speak to a model with: one JSON request, one answer, whole or streamed. No agent logic here."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

import httpx


class ModelClient:
    """A provider's HTTP interface, found through the environment as its own SDK would find it."""

    def __init__(self, provider: str, default_url: str) -> None:
        self.base_url = (os.environ.get(f"{provider}_BASE_URL") or default_url).rstrip("/")
        key = os.environ.get(f"{provider}_API_KEY") or "no-key"
        self._http = httpx.Client(headers={"authorization": f"Bearer {key}"}, timeout=60)

    def __enter__(self) -> ModelClient:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def ask(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Send a request and give the whole answer."""
        try:
            response = self._http.post(self.base_url + path, json=body)
        except httpx.HTTPError as error:
            raise self._unreachable(error) from error
        self._check(response)
        answer: dict[str, Any] = response.json()
        return answer

    def stream(self, path: str, body: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Send a request and give the answer's events as they come."""
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
    """The model gave no answer. Ends the program: the reason goes to stderr, the exit code is 1."""


def _reason(response: httpx.Response) -> str:
    try:
        return str(response.json()["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return response.text
