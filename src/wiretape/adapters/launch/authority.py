"""The private authority on disk: what signs for hosts, what clients are told to trust, and whether the two fit."""

from __future__ import annotations

import hashlib
import re
import ssl
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

LIFETIME_S: Final = 365 * 24 * 3600
EARLY_S: Final = 30 * 24 * 3600  # before its end it is renewed, or a warning says why it is not
KEY, CERTIFICATE = (
    "mitmproxy-ca.pem",
    "mitmproxy-ca-cert.pem",
)  # mitmproxy's names; beside the key stands its certificate
ANEW: Final = "to make a new one: wiretape doctor --remove-ca"

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


class Validity(NamedTuple):
    """When an authority begins and ends, in seconds since 1970."""

    begins: float
    expires: float

    @property
    def renewal(self) -> float:
        """When a start of wiretape may renew it: 30 days before it expires, or before its first year is over."""
        return min(self.expires, self.begins + LIFETIME_S) - EARLY_S


def validity(directory: Path) -> Validity:
    """How long the authority is valid. ValueError says why it cannot be used at all."""
    signs, path = signing_certificate(directory), directory / CERTIFICATE
    with _named(path):
        found, trusted = _validity_of(path), path.read_bytes()
    if certificates(signs) != certificates(trusted):
        raise ValueError(f"{path} is not the certificate that signs, which stands in {directory / KEY}")
    return found


def trusted_in(directory: Path, files: Iterable[str | None]) -> str | None:
    """The first of these files that holds the authority's certificate. Those of `directory` itself do not count."""
    ours = set(certificates((directory / CERTIFICATE).read_bytes()))
    for name in filter(None, files):
        with suppress(OSError):
            is_own = directory.resolve() in Path(name).resolve().parents
            if not is_own and not ours.isdisjoint(certificates(Path(name).read_bytes())):
                return name
    return None


def fingerprint(directory: Path) -> str:
    """The SHA-1 by which trust stores name the authority's certificate."""
    try:
        der = ssl.PEM_cert_to_DER_cert((directory / CERTIFICATE).read_text(encoding="ascii", errors="replace").strip())
    except ValueError:  # it is damaged, so no store has it
        return "SHA1"
    return hashlib.sha1(der, usedforsecurity=False).hexdigest().upper()


def remove(directory: Path) -> list[Path]:
    """Remove the authority, and the files that hold its certificate. Return their paths."""
    globs = ("mitmproxy-*", "bundle-*.pem", "jvm-*.jks", "php-*/*.ini")
    removed = [path for glob in globs for path in directory.glob(glob)]
    for path in removed:
        path.unlink()
    for path in directory.glob("php-*"):
        path.rmdir()
    return removed


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


def certificates(pem: bytes) -> list[bytes]:
    """What clients compare: the certificates themselves, however their lines end."""
    return [b"".join(found.split()) for found in _PEM.findall(pem)]


def _validity_of(certificate: Path) -> Validity:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(certificate)
    found = context.get_ca_certs()
    if not found:
        raise ValueError("it holds no authority's certificate")
    return Validity(*(ssl.cert_time_to_seconds(str(found[0][name])) for name in ("notBefore", "notAfter")))
