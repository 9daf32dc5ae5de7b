"""The private authority on disk: what signs for hosts, what clients are told to trust, and whether the two fit."""

from __future__ import annotations

import re
import ssl
from pathlib import Path
from typing import Final

KEY, CERTIFICATE = (
    "mitmproxy-ca.pem",
    "mitmproxy-ca-cert.pem",
)  # mitmproxy's names; beside the key stands its certificate

_PEM: Final = re.compile(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)


def holds_something(path: Path) -> bool:
    """False, too, after a maker was killed between creating a file and filling it."""
    return path.is_file() and path.stat().st_size > 0


def signing_certificate(directory: Path) -> bytes:
    """The certificate beside the key, as PEM. ValueError: there is none; OSError: the file cannot be read."""
    found = _PEM.search((directory / KEY).read_bytes())
    if found is None:
        raise ValueError("it holds no certificate")
    return found[0] + b"\n"


def expiry(directory: Path) -> float:
    """When the authority expires, in seconds since 1970. ValueError says why it cannot be used at all."""
    path = directory / KEY
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(path, password=_no_password)
        signs = _block(signing_certificate(directory))
        path = directory / CERTIFICATE
        expires = _expiry_of(path)
        trusted = _block(path.read_bytes())
    except (OSError, ValueError) as error:  # those of ssl are OSErrors
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise ValueError(f"{path} cannot be used: {reason}") from error
    if signs != trusted:
        raise ValueError(f"{path} is not the certificate that signs, which stands in {directory / KEY}")
    return expires


def anew(directory: Path) -> str:
    """How to mend an authority that cannot be used."""
    return f"remove {directory}: the next recording makes a new authority"


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
