"""The private authority on disk: what signs for hosts, what clients are told to trust, and whether the two fit."""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

KEY, CERTIFICATE = (
    "mitmproxy-ca.pem",
    "mitmproxy-ca-cert.pem",
)  # mitmproxy's names; beside the key stands its certificate

_PEM: Final = re.compile(rb"-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----")


def holds_something(path: Path) -> bool:
    """False, too, after a maker was killed between creating a file and filling it."""
    return path.is_file() and path.stat().st_size > 0


def signing_certificate(directory: Path) -> bytes:
    """The certificate beside the key, as PEM. ValueError says why nothing can be signed with the two."""
    path = directory / KEY
    with _named(path):
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(path, password=_no_password)
        found = _PEM.search(path.read_bytes())
        if found is None:
            raise ValueError("it holds no certificate")
    return found[0] + b"\n"


def expiry(directory: Path) -> float:
    """When the authority expires, in seconds since 1970. ValueError says why it cannot be used at all."""
    signs, path = signing_certificate(directory), directory / CERTIFICATE
    with _named(path):
        expires, trusted = _expiry_of(path), path.read_bytes()
    if _block(signs) != _block(trusted):
        raise ValueError(f"{path} is not the certificate that signs, which stands in {directory / KEY}")
    return expires


def anew(directory: Path) -> str:
    """How to mend an authority that cannot be used."""
    return f"remove {directory}: the next recording makes a new authority"


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Errors within are ValueErrors that name the file."""
    try:
        yield
    except (OSError, ValueError) as error:  # those of ssl are OSErrors
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise ValueError(f"{path} cannot be used: {reason}") from error


def _no_password() -> str:
    raise ValueError("its key has a password")  # which would be asked for on the terminal


def _block(pem: bytes) -> bytes:
    """What clients compare: the certificate itself, however its lines end."""
    found = _PEM.search(pem)
    return b"".join(found[0].split()) if found else b""


def _expiry_of(certificate: Path) -> float:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(certificate)
    found = context.get_ca_certs()
    if not found:
        raise ValueError("it holds no authority's certificate")
    return ssl.cert_time_to_seconds(str(found[0]["notAfter"]))
