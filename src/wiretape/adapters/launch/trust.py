"""Variables that make clients trust the recorder's private CA, and the directory of that CA.

Most variables replace a client's trusted certificates, so their bundle has the user's own certificates and the CA. A
few add to them. The recorder (mitmproxy) creates the CA.
"""

from __future__ import annotations

import hashlib
import os
import ssl
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from wiretape.errors import UsageError
from wiretape.tape.atomic import PRIVATE, lock, private, rewrite

# Variables that replace the trusted set
REPLACING = (
    "SSL_CERT_FILE",  # OpenSSL, Python's ssl, httpx, Go, Rust, Bun
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "AWS_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "CODEX_CA_CERTIFICATE",
    "PERL_LWP_SSL_CA_FILE",
)
ADDING = ("NODE_EXTRA_CA_CERTS", "DENO_CERT")
PHP_SETTINGS = "PHP_INI_SCAN_DIR"  # a directory of PHP settings, because PHP has no variable for certificates
_SYSTEM_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)
_LOCK_PATIENCE_S = 30.0


def state_directory(environ: Mapping[str, str]) -> Path:
    """Return the directory of wiretape's CA. It is created if necessary, and readable only by its user."""
    if environ.get("XDG_STATE_HOME"):
        base = Path(environ["XDG_STATE_HOME"])
    elif sys.platform == "win32" and environ.get("LOCALAPPDATA"):
        base = Path(environ["LOCALAPPDATA"])
    else:
        base = Path(environ.get("HOME") or os.path.expanduser("~")) / ".local" / "state"
    directory = base / "wiretape"
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        make_private(directory)
        if not os.access(directory, os.W_OK):
            raise PermissionError(13, "Permission denied")
    except OSError as error:
        raise UsageError(
            f"cannot store the recorder's certificates in {directory}: {error.strerror}\n"
            "  set XDG_STATE_HOME to a writable directory"
        ) from error
    return directory


def make_private(path: Path) -> None:
    """Remove the permissions of other users from a file or directory of this user."""
    if sys.platform != "win32" and path.stat().st_uid == os.geteuid() and path.stat().st_mode & 0o077:
        path.chmod(path.stat().st_mode & 0o700)


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Hold the directory's lock, so that only one process creates the CA."""
    with open(directory / "lock", "a+b", opener=private) as handle:
        deadline = time.monotonic() + _LOCK_PATIENCE_S
        while not lock(handle.fileno()):
            if time.monotonic() > deadline:
                raise UsageError(f"another wiretape has held {directory / 'lock'} for {_LOCK_PATIENCE_S:.0f} s")
            time.sleep(0.02)
        yield  # closing the file releases the lock


def trust_variables(environ: Mapping[str, str], ca: Path, directory: Path) -> dict[str, str]:
    """Return every variable that adds `ca` to a client's trusted certificates. Bundles are written to `directory`."""
    ours = ca.read_bytes()
    variables, own = {}, environ.get("SSL_CERT_FILE")
    bundles: dict[str | None, str] = {}  # by the file in the user's variable; most are not set
    for name in REPLACING:
        named = environ.get(name)
        if named not in bundles:
            bundles[named] = str(_bundle([_contents([named]) or _contents([own]) or default_bundle(), ours], directory))
        variables[name] = bundles[named]
    for name in ADDING:
        variables[name] = str(_bundle([_contents([environ.get(name)]), ours], directory))
    variables[PHP_SETTINGS] = _php_settings(environ, variables["SSL_CERT_FILE"], directory)
    return variables


def _php_settings(environ: Mapping[str, str], bundle: str, directory: Path) -> str:
    """Return PHP's directories of settings, with ours at the end.

    An empty entry in the list stands for PHP's default. An empty variable means no directory at all.
    """
    lines = "".join(f'{name} = "{bundle}"\n' for name in ("curl.cainfo", "openssl.cafile"))
    ours = directory / f"php-{hashlib.sha256(lines.encode()).hexdigest()[:16]}"
    try:
        ours.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot write the settings for PHP in {ours}: {error.strerror or error}") from error
    keep(lines.encode(), ours, "wiretape", ".ini")
    own = environ.get(PHP_SETTINGS)
    return str(ours) if own == "" else os.pathsep.join([own or "", str(ours)])


def upstream_bundle(environ: Mapping[str, str], directory: Path) -> Path:
    """Return the bundle to verify upstreams with: all certificates that a client of this user would trust."""
    parts = [_contents([environ.get(name)]) for name in (*REPLACING, *ADDING)]
    if not _contents([environ.get("SSL_CERT_FILE")]):
        parts.insert(0, default_bundle())
    return _bundle(list(dict.fromkeys(parts)), directory)


def _contents(paths: Iterable[str | None]) -> bytes:
    """Return the content of the first readable file. A variable with a missing file counts as not set."""
    for path in paths:
        if not path:
            continue
        try:
            return Path(path).read_bytes()
        except OSError:
            continue
    return b""


def trust_files(environ: Mapping[str, str]) -> list[str | None]:
    """Return every file from which clients of this user may read trusted certificates."""
    paths = ssl.get_default_verify_paths()
    named = [environ.get(name) for name in (*REPLACING, *ADDING)]
    return [*named, paths.cafile, paths.openssl_cafile, *_SYSTEM_BUNDLES, _certifis()]


def default_bundle() -> bytes:
    """Return the default certificates of clients: the system's, and certifi's, which Python clients use."""
    paths = ssl.get_default_verify_paths()
    return b"\n".join(
        _contents(files) for files in ([paths.cafile, paths.openssl_cafile, *_SYSTEM_BUNDLES], [_certifis()])
    )


def _certifis() -> str | None:
    try:
        import certifi
    except ImportError:
        return None
    return certifi.where()


def _bundle(parts: Iterable[bytes], directory: Path) -> Path:
    """Write a file with these certificates, and return its path."""
    return keep(b"\n".join(part.rstrip() + b"\n" for part in parts if part.strip()), directory, "bundle", ".pem")


def keep(data: bytes, directory: Path, name: str, ending: str) -> Path:
    """Write data to a file that is named by its hash, so that a file in use never changes. Return its path."""
    path = directory / f"{name}-{hashlib.sha256(data).hexdigest()[:16]}{ending}"
    if not path.exists():
        try:
            rewrite(path, [data], PRIVATE)
        except OSError as error:
            raise UsageError(f"cannot write the certificates {path}: {error.strerror or error}") from error
    return path
