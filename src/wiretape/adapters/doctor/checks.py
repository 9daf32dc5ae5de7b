"""Checks of this machine: Python, the recorder, certificates, ports, variables, disk.

Each check is a function that returns its result, and changes nothing.
"""

from __future__ import annotations

import os
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from wiretape._plugins import KINDS, installed
from wiretape.adapters.launch.authority import (
    ANEW,
    CERTIFICATE,
    EARLY_S,
    KEY,
    fingerprint,
    holds_something,
    remove,
    signing_certificate,
    trusted_in,
    validity,
)
from wiretape.adapters.launch.trust import ADDING, REPLACING, default_bundle, locked, state_directory, trust_files
from wiretape.adapters.routing.base_urls import unroutable_base_urls, user_base_urls
from wiretape.adapters.routing.hosts import is_loopback
from wiretape.adapters.routing.routes import parse_base_url, route_url, without_user
from wiretape.adapters.routing.upstream_proxy import upstream_proxy
from wiretape.adapters.sealed.network import make_sealed_network
from wiretape.adapters.settings import load_settings
from wiretape.errors import UsageError, WiretapeError
from wiretape.views.doctor import Check

# Libraries that call models. Their versions help to find known bugs.
LIBRARIES = (
    "httpx",
    "httpx2",
    "requests",
    "aiohttp",
    "websockets",
    "openai",
    "anthropic",
    "google-genai",
    "litellm",
    "langchain-openai",
    "langchain-anthropic",
    "openai-agents",
    "pydantic-ai-slim",
    "smolagents",
    "ollama",
    "boto3",
)
_CONNECT_S = 1.0
_LITTLE = 200 * 1024 * 1024  # bytes of disk


def machine_checks(environ: Mapping[str, str], cwd: Path) -> Iterator[Check]:
    """Yield the checks that do not depend on a program or a tape."""
    yield python_check(tuple(sys.version_info[:2]))
    yield recorder_check()
    yield from certificate_checks(environ)
    yield port_check()
    yield sealing_check()
    yield proxy_check(environ)
    yield from base_url_checks(environ)
    yield settings_check(cwd)
    yield from plugin_checks()
    yield directory_check(cwd)


def python_check(running: tuple[int, ...]) -> Check:
    shown = ".".join(map(str, running))
    if running < (3, 12):
        return Check(
            level="warn",
            what="Python",
            said=f"{shown}: recording needs 3.12 or later; replay and all other commands work",
            next="in wiretape's own folder: uv tool install --python 3.13 '.[proxy]'",
        )
    return Check(level="ok", what="Python", said=f"{shown} ({sys.executable})")


def recorder_check() -> Check:
    if find_spec("mitmproxy") is None:
        return Check(
            level="warn",
            what="recorder",
            said="mitmproxy is not installed: recording does not work; replay and all other commands do",
            next="in wiretape's own folder: pip install '.[proxy]'",
        )
    return Check(level="ok", what="recorder", said=f"mitmproxy {version('mitmproxy')}")


def certificate_checks(environ: Mapping[str, str]) -> Iterator[Check]:
    """Check the private certificate authority, and the user's trust bundles."""
    try:
        directory = state_directory(environ)
    except WiretapeError as error:
        first, _, rest = str(error).partition("\n")
        yield Check(level="fail", what="certificates", said=first, next=rest.strip() or None)
        return
    yield authority_check(directory, environ, time.time())
    yield from _trust_checks(environ)


def authority_check(directory: Path, environ: Mapping[str, str], now: float) -> Check:
    """Check the CA that signs the certificates which the recorder presents to clients."""
    certificate, key = directory / CERTIFICATE, directory / KEY
    if not holds_something(key):
        return Check(level="ok", what="authority", said=f"none yet; the first recording creates it in {directory}")
    try:
        if not holds_something(certificate):
            signing_certificate(directory)
            said = f"{key}; the next recording writes {certificate.name} again"
            return Check(level="ok", what="authority", said=said)
        valid = validity(directory)
    except ValueError as error:
        return Check(level="fail", what="authority", said=str(error), next=ANEW)
    trusted = trusted_in(directory, trust_files(environ))
    also = f", trusted in {trusted}" if trusted is not None else ""
    if valid.expires - EARLY_S < now:
        said = f"{certificate} {'expires' if valid.expires > now else 'expired'} on {_day(valid.expires)}{also}"
        renewed = "the next recording renews it" if trusted is None or valid.expires <= now else ANEW
        return Check(level="warn", what="authority", said=said, next=renewed)
    if os.name == "posix" and key.stat().st_mode & 0o077:
        said = f"{key} is readable by other users, who could read your TLS traffic with it"
        return Check(level="warn", what="authority", said=said, next=f"chmod 600 {key}")
    renewal = f", renewed from {_day(valid.renewal)} on" if trusted is None else also
    return Check(level="ok", what="authority", said=f"{certificate}, valid until {_day(valid.expires)}{renewal}")


def _day(seconds: float) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(seconds))


def removed_authority(environ: Mapping[str, str]) -> list[str]:
    """Remove the authority. Return lines that tell the user what to remove by hand."""
    directory = state_directory(environ)
    with locked(directory):
        has_certificate = holds_something(directory / CERTIFICATE)
        trusted = trusted_in(directory, trust_files(environ)) if has_certificate else None
        number = fingerprint(directory) if has_certificate else "SHA1"
        count = len(remove(directory))
    if not count:
        return [f"there is no certificate authority in {directory}"]
    lines = [
        f"removed the certificate authority in {directory} ({count} files)",
        "the next recording makes a new one; end the recorders and replays that still use the old one",
    ]
    if trusted is not None:
        lines.append(f"{trusted} still trusts it: remove it there")
    return [
        *lines,
        "where you have added it to a trust store by hand:",
        "  Debian, Ubuntu   remove its file from /usr/local/share/ca-certificates; sudo update-ca-certificates --fresh",
        "  Fedora, RHEL     remove its file from /etc/pki/ca-trust/source/anchors; sudo update-ca-trust",
        f"  macOS            security delete-certificate -Z {number}",
        f"  Windows          certutil -user -delstore Root {number}",
    ]


def _trust_checks(environ: Mapping[str, str]) -> Iterator[Check]:
    bundle = default_bundle().count(b"BEGIN CERTIFICATE")
    if bundle:
        yield Check(level="ok", what="trust bundle", said=f"{bundle} certificates of this system and of certifi")
    else:
        yield Check(
            level="fail",
            what="trust bundle",
            said="the certificates of this system were not found: no upstream can be verified or reached",
            next="install ca-certificates, or set SSL_CERT_FILE",
        )
    named = {name: value for name in (*REPLACING, *ADDING) if (value := environ.get(name))}
    for name, value in named.items():
        if not os.access(value, os.R_OK):
            said = f"{name} names {value}, which cannot be read, so it is ignored"
            yield Check(level="warn", what="trust bundle", said=said, next=f"unset {name}, or correct it")
    for path in dict.fromkeys(value for value in named.values() if os.access(value, os.R_OK)):
        names = ", ".join(name for name, value in named.items() if value == path)
        yield Check(level="ok", what="trust bundle", said=f"{path} ({names}) stays trusted")


def port_check() -> Check:
    try:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            probe.listen()
            with socket.create_connection(probe.getsockname(), timeout=_CONNECT_S):
                pass
    except OSError as error:
        said = f"cannot listen and connect on 127.0.0.1: {error.strerror or error}"
        return Check(level="fail", what="ports", said=said, next="allow loopback connections (sandbox, firewall)")
    return Check(level="ok", what="ports", said="127.0.0.1 listens and connects")


def sealing_check() -> Check:
    """Check whether `replay --sealed` works here."""
    if sys.platform != "linux":
        return Check(level="ok", what="sealed replay", said="not available: it needs Linux")
    try:
        seal = make_sealed_network([])
    except UsageError as error:
        said, *steps = str(error).removeprefix("--sealed: ").splitlines()
        return Check(level="warn", what="sealed replay", said=said, next=steps[0].strip() if steps else None)
    seal.close()
    how = "in a user namespace" if seal.users >= 0 else "running as root"
    return Check(level="ok", what="sealed replay", said=f"--sealed is available ({how})")


def proxy_check(environ: Mapping[str, str]) -> Check:
    """Check the user's own proxy, through which the recorder connects."""
    via, problem = upstream_proxy(environ)
    if problem is not None:
        return Check(level="warn", what="proxy", said=problem, next="set HTTPS_PROXY to an http or https proxy")
    if via is None:
        return Check(level="ok", what="proxy", said="none is set: hosts are reached directly")
    host, _, port = via.name.rpartition(":")
    if not _listens(host, int(port)):
        stale = " (left over from a recording in this shell?)" if is_loopback(host) else ""
        names = [name for name in environ if name.lower() in ("https_proxy", "http_proxy", "all_proxy")]
        return Check(
            level="fail",
            what="proxy",
            said=f"nothing answers at {via.name}, which your proxy variables name{stale}",
            next=f"unset {' '.join(names)}, or start that proxy",
        )
    return Check(level="ok", what="proxy", said=f"the recorder connects through {via.name}, except to NO_PROXY")


def base_url_checks(environ: Mapping[str, str]) -> Iterator[Check]:
    """Check base URLs that the user has set."""
    own = user_base_urls(environ)
    for name, url in own.items():
        yield _base_url_check(name, url)
    unroutable = unroutable_base_urls(environ)
    for name in unroutable:
        said = f"{name} is not an http:// or https:// URL with a host: a recording does not change it"
        yield Check(level="warn", what="base URL", said=said, next=f"unset {name}, or correct it")
    if not own and not unroutable:
        yield Check(
            level="ok", what="base URL", said="no variable is set: the providers' defaults are routed through wiretape"
        )


def _base_url_check(name: str, url: str) -> Check:
    parsed = parse_base_url(url)
    assert parsed is not None, url
    host, shown = parsed.host.strip("[]"), without_user(url)
    if is_loopback(host) and not _listens(host, parsed.port):
        stale = route_url(parsed.after) is not None
        return Check(
            level="fail" if stale else "warn",
            what="base URL",
            said=f"{name}={shown}: nothing listens there"
            + (", it is left over from a recorder or replay that has ended" if stale else " now"),
            next=f"unset {name}" if stale else "start that server before you record (a replay needs none)",
        )
    return Check(level="ok", what="base URL", said=f"{name}={shown} is routed through wiretape; {host} is recorded")


def _listens(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), timeout=_CONNECT_S):
            return True
    except OSError:
        return False


def settings_check(cwd: Path) -> Check:
    try:
        settings = load_settings(cwd)
    except WiretapeError as error:
        return Check(level="fail", what="settings", said=str(error), next="correct that file")
    parts = {"redact": settings.redact, "mask": settings.mask, "hosts": settings.hosts}
    listed = ", ".join(f"{len(values)} {name}" for name, values in parts.items() if values)
    return Check(level="ok", what="settings", said=f"[tool.wiretape]: {listed}" if listed else "none")


def directory_check(cwd: Path) -> Check:
    """Check the directory of new tapes: captures/ if it exists, else this one."""
    directory = cwd / "captures" if (cwd / "captures").is_dir() else cwd
    try:
        with tempfile.TemporaryFile(dir=directory) as file:
            file.write(b"x")
        free = shutil.disk_usage(directory).free
    except OSError as error:
        said = f"{directory} cannot be written: {error.strerror or error}"
        return Check(level="fail", what="tapes", said=said, next="record to another directory with -o")
    if free < _LITTLE:
        said = f"{directory} has {free // 2**20} MB left"
        return Check(
            level="warn", what="tapes", said=said, next="free some disk space: a full disk makes tapes incomplete"
        )
    return Check(level="ok", what="tapes", said=f"{directory} can be written")


def plugin_checks() -> Iterator[Check]:
    """Every installed plug-in, and why a broken one cannot be used."""
    for kind in KINDS:
        for plugin in installed(kind):
            source = f"{plugin.package or 'an unknown package'} ({plugin.value})"
            if plugin.problem:
                text = f"{kind.noun} of {source} {plugin.problem}"
                yield Check(
                    level="warn", what=f"plug-in {plugin.name}", said=text, next="update or uninstall its package"
                )
            else:
                yield Check(level="ok", what=f"plug-in {plugin.name}", said=f"{kind.noun} of {source}")


def library_check() -> Check:
    """List the SDKs and HTTP clients in wiretape's own environment."""
    found = []
    for name in LIBRARIES:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    return Check(level="ok", what="libraries", said=", ".join(found) or "none of the known ones")
