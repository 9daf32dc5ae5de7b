"""The private authority whose certificates stand for hosts: made by mitmproxy on first use. Light to import."""

from __future__ import annotations

import time
from pathlib import Path

from wiretape.adapters.authority import CERTIFICATE, KEY, anew, expiry, holds_something, signing_certificate
from wiretape.adapters.trust import locked, make_private
from wiretape.errors import UsageError
from wiretape.tape.atomic import rewrite


def ensure_ca(directory: Path) -> Path:
    """The authority's certificate in `directory`, made if it is not there. UsageError: what is there cannot be used."""
    with locked(directory):
        if not holds_something(directory / KEY):
            from mitmproxy.certs import CertStore

            CertStore.from_store(directory, "mitmproxy", 2048)
        for key in directory.glob("*-ca.p*"):
            make_private(key)
        try:
            if not holds_something(directory / CERTIFICATE):
                rewrite(directory / CERTIFICATE, [signing_certificate(directory)])
            expires = expiry(directory)
        except ValueError as error:
            raise UsageError(f"{error}\n  {anew(directory)}") from error
    if expires < time.time():
        day = time.strftime("%Y-%m-%d", time.gmtime(expires))
        raise UsageError(f"{directory / CERTIFICATE} expired on {day}: no client would trust it\n  {anew(directory)}")
    return directory / CERTIFICATE
