"""The private authority whose certificates stand for hosts: made by mitmproxy on first use. Light to import."""

from __future__ import annotations

from pathlib import Path

from wiretape.adapters.trust import locked

_KEY, _CERTIFICATE = "mitmproxy-ca.pem", "mitmproxy-ca-cert.pem"


def ensure_ca(directory: Path) -> Path:
    """The authority's certificate in `directory`, made if it is not there."""
    with locked(directory):
        if not all(_holds_something(directory / name) for name in (_KEY, _CERTIFICATE)):
            from mitmproxy.certs import CertStore

            CertStore.from_store(directory, "mitmproxy", 2048)
    return directory / _CERTIFICATE


def _holds_something(path: Path) -> bool:
    return path.is_file() and path.stat().st_size > 0
