"""Make the private certificate authority on first use, and renew it before it expires."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

from wiretape.adapters.launch.authority import (
    ANEW,
    CERTIFICATE,
    EARLY_S,
    KEY,
    LIFETIME_S,
    Validity,
    holds_something,
    signing_certificate,
    trusted_in,
    validity,
)
from wiretape.adapters.launch.trust import locked, make_private, trust_files
from wiretape.errors import UsageError
from wiretape.tape.atomic import PRIVATE, rewrite

_BACKDATED_S = 2 * 24 * 3600  # for clients whose clocks are slow


def ensure_ca(
    directory: Path,
    environ: Mapping[str, str] = os.environ,
    warn: Callable[[str], None] = lambda text: None,
    clock: Callable[[], float] = time.time,
) -> Path:
    """Return the authority's certificate in `directory`, made on first use and renewed 30 days before it expires.

    An authority that is in one of the user's trust files is kept until it expires. `warn` is called in both cases.
    UsageError: the files in `directory` cannot be used.
    """
    with locked(directory):
        if not holds_something(directory / KEY):
            _make(directory, clock())
        for key in directory.glob("*-ca.p*"):
            make_private(key)
        try:
            if not holds_something(directory / CERTIFICATE):
                rewrite(directory / CERTIFICATE, [signing_certificate(directory)])
            found = validity(directory)
            if found.renewal < clock():
                _renew(directory, found, trusted_in(directory, trust_files(environ)), warn, clock())
        except ValueError as error:
            raise UsageError(f"{error}\n  {ANEW}") from error
    return directory / CERTIFICATE


def _renew(directory: Path, old: Validity, trusted: str | None, warn: Callable[[str], None], now: float) -> None:
    certificate, day = directory / CERTIFICATE, time.strftime("%Y-%m-%d", time.gmtime(old.expires))
    if trusted is not None and old.expires > now:
        if old.expires - EARLY_S < now:
            warn(f"{certificate} expires on {day}; it is kept until then, because {trusted} contains it\n  {ANEW}")
        return
    _make(directory, now)
    state = "expired" if old.expires <= now else "was to expire"
    warn(
        f"{certificate} is renewed: the previous one {state} on {day}"
        + (f", and {trusted} contains it" if trusted is not None else "")
        + "\n  if you have added it to a trust store by hand, add the new one"
    )


def _make(directory: Path, now: float) -> None:
    """Write a new authority. The key's file has the certificate, too, in case a crash prevents the second write."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import rsa
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "wiretape")])
    begins = datetime.fromtimestamp(now - _BACKDATED_S, UTC)
    use = dict.fromkeys(
        ("digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement"), False
    )
    made = (
        x509.CertificateBuilder()
        .serial_number(x509.random_serial_number())
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .not_valid_before(begins)
        .not_valid_after(datetime.fromtimestamp(now - _BACKDATED_S + LIFETIME_S, UTC))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(
            x509.KeyUsage(**use, key_cert_sign=True, crl_sign=True, encipher_only=False, decipher_only=False),
            critical=True,
        )
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
        .public_bytes(serialization.Encoding.PEM)
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    for old in directory.glob("mitmproxy-ca*"):
        if old.name != KEY:
            old.unlink()
    rewrite(directory / KEY, [private + made], PRIVATE)
    rewrite(directory / CERTIFICATE, [made])
