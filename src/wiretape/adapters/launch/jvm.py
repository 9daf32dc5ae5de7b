"""Options that route a Java virtual machine through wiretape: it ignores proxy variables, and has its own trust store.

The new store has the certificates of the machine's own store, those of this run's bundle, and wiretape's CA. It is a
JKS file, the oldest format, which every JVM reads: a count, the certificates, and a digest over all of it.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import ssl
import struct
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from wiretape.adapters.launch.trust import keep

_MAGIC: Final = 0xFEEDFEED
_TRUSTED: Final = 2  # the tag of a certificate; 1 is a private key's
_HEAD, _TAG, _STAMP, _LENGTH = struct.Struct(">III"), struct.Struct(">I"), struct.Struct(">Q"), struct.Struct(">I")
_TEXT_LENGTH: Final = struct.Struct(">H")
_PASSWORD: Final = "changeit"  # the password of every JVM's own store; it only detects damage
_SALT: Final = b"Mighty Aphrodite"  # defined by the format
_PEM: Final = re.compile(r"-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----")
_OWN_STORE: Final = "-Djavax.net.ssl.trustStore="
_OWN_PASSWORD: Final = "-Djavax.net.ssl.trustStorePassword="
_NEEDS_QUOTES: Final = re.compile(r"[\s'\"]")  # characters that end an option, or begin a quotation
_STORES: Final = ("lib/security/jssecacerts", "lib/security/cacerts", "jre/lib/security/cacerts")


def jvm_options(variables: Mapping[str, str], environ: Mapping[str, str]) -> str:
    """Return the options that correspond to the variables HTTPS_PROXY and SSL_CERT_FILE of other programs."""
    proxy = urlsplit(variables.get("HTTPS_PROXY", ""))
    options = []
    if proxy.hostname:
        for scheme in ("http", "https"):
            options += [f"-D{scheme}.proxyHost={proxy.hostname}", f"-D{scheme}.proxyPort={proxy.port}"]
        options.append("-Dhttp.nonProxyHosts=")  # else requests to model servers on this machine would bypass the proxy
    bundle = variables.get("SSL_CERT_FILE")
    if bundle:
        store = _store(Path(bundle), environ) if os.path.isfile(bundle) else bundle
        options += [f"{_OWN_STORE}{store}", f"-Djavax.net.ssl.trustStorePassword={_PASSWORD}"]
        options.append("-Djavax.net.ssl.trustStoreType=JKS")
    return " ".join(shlex.quote(one) if _NEEDS_QUOTES.search(one) else one for one in options)


def _store(bundle: Path, environ: Mapping[str, str]) -> Path:
    found = [*own_certificates(environ), *pem_certificates(bundle.read_text("ascii", "replace"))]
    return keep(write_store(list(dict.fromkeys(found))), bundle.parent, "jvm", ".jks")


def pem_certificates(text: str) -> Iterator[bytes]:
    """Yield the certificates of a bundle, as DER. Other content is skipped, as in OpenSSL."""
    for block in _PEM.findall(text):
        try:
            certificate = ssl.PEM_cert_to_DER_cert(block)
        except ValueError:
            continue
        if certificate:
            yield certificate


def own_certificates(environ: Mapping[str, str]) -> list[bytes]:
    """Return the JVM's own certificates: of the store in JAVA_TOOL_OPTIONS, else of the store of `java`."""
    given = _given(environ)
    passwords = (*_named(_OWN_PASSWORD, given), _PASSWORD)
    for path in _own_stores(given, environ):
        try:
            return read_store(path.read_bytes(), passwords)
        except (OSError, ValueError):
            continue
    return []


def _given(environ: Mapping[str, str]) -> list[str]:
    """Split JAVA_TOOL_OPTIONS as a JVM does: with quotations as in a shell, but without escapes."""
    words = shlex.shlex(environ.get("JAVA_TOOL_OPTIONS", ""), posix=True, punctuation_chars=False)
    words.whitespace_split, words.escape, words.commenters = True, "", ""
    try:
        return list(words)
    except ValueError:  # an open quotation: a JVM would not start with it
        return []


def _named(option: str, given: Sequence[str]) -> list[str]:
    """Return the values of an option, the last one first, because it takes precedence."""
    return [word.removeprefix(option) for word in reversed(given) if word.startswith(option)]


def _own_stores(given: Sequence[str], environ: Mapping[str, str]) -> Iterator[Path]:
    yield from map(Path, _named(_OWN_STORE, given))
    homes = [Path(environ["JAVA_HOME"])] if environ.get("JAVA_HOME") else []
    java = shutil.which("java", path=environ.get("PATH"))
    if java is not None:
        homes.append(Path(java).resolve().parent.parent)
    yield from (home / name for home in homes for name in _STORES)


def write_store(certificates: list[bytes]) -> bytes:
    """Return a JKS store with these DER certificates."""
    parts = [_HEAD.pack(_MAGIC, 2, len(certificates))]
    for number, certificate in enumerate(certificates):
        parts += [_TAG.pack(_TRUSTED), _text(f"wiretape-{number}"), _STAMP.pack(0), _text("X.509")]
        parts += [_LENGTH.pack(len(certificate)), certificate]
    data = b"".join(parts)
    return data + _digest(data)


def read_store(data: bytes, passwords: Sequence[str] = (_PASSWORD,)) -> list[bytes]:
    """Return the trusted certificates of a JKS or PKCS#12 store, as DER. Raises ValueError."""
    if data[:4] == _MAGIC.to_bytes(4):
        return list(_read_jks(data))
    return _read_pkcs12(data, passwords)


def _read_jks(data: bytes) -> Iterator[bytes]:
    try:
        _, version, count = _HEAD.unpack_from(data)
        at = _HEAD.size
        for _ in range(count):
            (tag,) = _TAG.unpack_from(data, at)
            if tag != _TRUSTED:
                return  # a private key: entries after it are not read
            at = _past_text(data, at + _TAG.size) + _STAMP.size
            at = _past_text(data, at) if version > 1 else at
            (length,) = _LENGTH.unpack_from(data, at)
            at += _LENGTH.size + length
            if at > len(data):
                raise ValueError("a JKS store that is cut short: in a certificate")
            yield data[at - length : at]
    except struct.error as error:
        raise ValueError(f"a JKS store that is cut short: {error}") from error


def _read_pkcs12(data: bytes, passwords: Sequence[str]) -> list[bytes]:
    try:
        from cryptography.hazmat.primitives.serialization import Encoding
        from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12
    except ImportError:  # part of the optional extra, as TLS interception is
        return []
    for password in (*(one.encode() for one in passwords), None):
        try:
            held = load_pkcs12(data, password).additional_certs
        except ValueError:
            continue
        return [one.certificate.public_bytes(Encoding.DER) for one in held]
    raise ValueError("not a readable store")


def _past_text(data: bytes, at: int) -> int:
    (length,) = _TEXT_LENGTH.unpack_from(data, at)
    return at + _TEXT_LENGTH.size + int(length)


def _text(text: str) -> bytes:
    return _TEXT_LENGTH.pack(len(text)) + text.encode()


def _digest(data: bytes) -> bytes:
    return hashlib.sha1(_PASSWORD.encode("utf-16-be") + _SALT + data, usedforsecurity=False).digest()
