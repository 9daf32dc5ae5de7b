"""One redactor in several threads, as the recorder uses it: the proxy's thread and the writer's search with it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import orjson
import pytest

from wiretape.tape.redaction import PLACEHOLDER, Redactor

SECRETS = [f"sk-proj-{i:02}a8F3k2L9x7Q4m1Zb{i * 7919 % 1000:03}" for i in range(60)]
NAMED = [f"Zq{i:02}h7Kx2Lm9Pd4{i * 7919 % 1000:03}" for i in range(60)]
THREADS = 6


@pytest.fixture(autouse=True)
def _switching_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.slow
def test_a_secret_has_one_placeholder_in_all_threads_and_is_never_kept() -> None:
    redactor, together = Redactor(), Barrier(THREADS)

    def work(number: int) -> list[tuple[str, str]]:
        """(secret, what stands for it) by each of the methods; each thread begins with another secret."""
        together.wait()
        found = []
        for step in range(len(SECRETS)):
            i = (step + number * 7) % len(SECRETS)
            key, named = SECRETS[i], NAMED[i]
            found.append((key, redactor.text(f"the key {key} is here")[8:-8]))
            found.append((key, redactor.data(f'{{"text": "{key}"}}'.encode()).decode()[10:-2]))
            found.append((named, redactor.value({"api_key": named})["api_key"]))
            found.append((named, redactor.text(f"again: {named}, from a header")[7:-15]))
            frames, _ = redactor.frames(
                [b'data: {"delta": "%b"}\n\n' % key[:20].encode(), b'data: {"delta": "%b"}\n\n' % key[20:].encode()]
            )
            found.append((key, "".join(orjson.loads(frame[6:])["delta"] for frame in frames)))
        return found

    with ThreadPoolExecutor(THREADS) as pool:
        found = [pair for pairs in pool.map(work, range(THREADS)) for pair in pairs]
    stands = {secret: {made for of, made in found if of == secret} for secret in (*SECRETS, *NAMED)}
    assert all(len(made) == 1 and PLACEHOLDER.fullmatch(*made) for made in stands.values()), stands
    assert len({made for each in stands.values() for made in each}) == len(SECRETS) + len(NAMED)
