"""The private certificate authority on disk: its key, its certificate, and whether the two match."""

from __future__ import annotations

import hashlib
import re
import ssl
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

LIFETIME_S: Final = 365 * 24 * 3600
EARLY_S: Final = 30 * 24 * 3600  # so long before its end it is renewed, or a warning says why not
KEY, CERTIFICATE = (
    "mitmproxy-ca.pem",
    "mitmproxy-ca-cert.pem",
)  # mitmproxy's names; the first file has the key and its certificate
ANEW: Final = "to make a new one: wiretape doctor --remove-ca"

_PEM: Final = re.compile(rb"-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----")


def holds_something(path: Path) -> bool:
    """True for a file with content. It is empty if its writer was killed."""
    return path.is_file() and path.stat().st_size > 0


def signing_certificate(directory: Path) -> bytes:
    """Return the certificate in the key's file, as PEM. Raises ValueError if the two cannot sign."""
    path = directory / KEY
    with _named(path):
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(path, password=_no_password)
        found = _PEM.search(path.read_bytes())
        if found is None:
            raise ValueError("it has no certificate")
    return found[0] + b"\n"


class Validity(NamedTuple):
    """The validity period of an authority, in seconds since 1970."""

    begins: float
    expires: float

    @property
    def renewal(self) -> float:
        """The time of its renewal: 30 days before it expires, or before its first year is over."""
        return min(self.expires, self.begins + LIFETIME_S) - EARLY_S


def validity(directory: Path) -> Validity:
    """Return the authority's validity. Raises ValueError if it cannot be used."""
    signs, path = signing_certificate(directory), directory / CERTIFICATE
    with _named(path):
        found, trusted = _validity_of(path), path.read_bytes()
    if certificates(signs) != certificates(trusted):
        raise ValueError(f"{path} is not the certificate of the key in {directory / KEY}")
    return found


def trusted_in(directory: Path, files: Iterable[str | None]) -> str | None:
    """Return the first file outside `directory` that has the authority's certificate."""
    ours = set(certificates((directory / CERTIFICATE).read_bytes()))
    for name in filter(None, files):
        with suppress(OSError):
            is_own = directory.resolve() in Path(name).resolve().parents
            if not is_own and not ours.isdisjoint(certificates(Path(name).read_bytes())):
                return name
    return None


def fingerprint(directory: Path) -> str:
    """Return the SHA-1 that identifies the certificate in trust stores."""
    try:
        der = ssl.PEM_cert_to_DER_cert((directory / CERTIFICATE).read_text(encoding="ascii", errors="replace").strip())
    except ValueError:  # a damaged certificate is in no store
        return "SHA1"
    return hashlib.sha1(der, usedforsecurity=False).hexdigest().upper()


def remove(directory: Path) -> list[Path]:
    """Remove the authority and the files with its certificate. Return their paths."""
    globs = ("mitmproxy-*", "bundle-*.pem", "jvm-*.jks", "php-*/*.ini")
    removed = [path for glob in globs for path in directory.glob(glob)]
    for path in removed:
        path.unlink()
    for path in directory.glob("php-*"):
        path.rmdir()
    return removed


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Turn errors in the block into a ValueError that names the file."""
    try:
        yield
    except (OSError, ValueError) as error:  # those of ssl are OSErrors
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise ValueError(f"{path} cannot be used: {reason}") from error


def _no_password() -> str:
    raise ValueError("its key has a password")  # OpenSSL would prompt for it


def certificates(pem: bytes) -> list[bytes]:
    """Return the certificates without whitespace, so that line ends do not matter in a comparison."""
    return [b"".join(found.split()) for found in _PEM.findall(pem)]


def _validity_of(certificate: Path) -> Validity:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(certificate)
    found = context.get_ca_certs()
    if not found:
        raise ValueError("it has no certificate of an authority")
    return Validity(*(ssl.cert_time_to_seconds(str(found[0][name])) for name in ("notBefore", "notAfter")))
