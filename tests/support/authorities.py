"""Wiretape's private certificate authority as mitmproxy stores it, of any age. Needs mitmproxy's libraries."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest


def make_wiretapes_authority(directory: Path, days: int, lifetime: int = 365) -> float:
    """A CA in this directory that is valid for so many days; when it expires, in seconds since 1970.

    `lifetime`: from its first day to its last. Those of wiretape 0.1 had ten years.
    """
    pytest.importorskip("cryptography", reason="certificates are made with cryptography")
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    until = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=days)
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(until - datetime.timedelta(days=lifetime))
        .not_valid_after(until)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    certificate = made.public_bytes(pem)
    private = key.private_bytes(pem, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption())
    (directory / "mitmproxy-ca-cert.pem").write_bytes(certificate)
    (directory / "mitmproxy-ca.pem").write_bytes(private + certificate)
    (directory / "mitmproxy-ca.pem").chmod(0o600)
    return until.timestamp()
