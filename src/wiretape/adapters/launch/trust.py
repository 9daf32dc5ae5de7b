"""What makes clients trust the recorder's certificates: where its private CA lives, and the variables that name it.

Most variables *replace* a client's trusted certificates, so they get a bundle of what the user had there before and
our CA; a few *add* to them. The CA itself is made by the recorder (mitmproxy); nothing here needs it.
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

# Variables that replace the trusted set, in the order in which a user's own value is looked for.
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
PHP_SETTINGS = "PHP_INI_SCAN_DIR"  # PHP reads no variable that names certificates: only its own settings do
_SYSTEM_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)
_LOCK_PATIENCE_S = 30.0


def state_directory(environ: Mapping[str, str]) -> Path:
    """Where wiretape keeps its CA, made if need be, readable by its user alone."""
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
            f"cannot keep the recorder's certificates in {directory}: {error.strerror}\n"
            "  set XDG_STATE_HOME to a directory that can be written"
        ) from error
    return directory


def make_private(path: Path) -> None:
    """Take a file or directory of this user from all others, whoever made it."""
    if sys.platform != "win32" and path.stat().st_uid == os.geteuid() and path.stat().st_mode & 0o077:
        path.chmod(path.stat().st_mode & 0o700)


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Hold the directory's lock: makers of a CA must not race, or each would trust another's certificate."""
    with open(directory / "lock", "a+b", opener=private) as handle:
        deadline = time.monotonic() + _LOCK_PATIENCE_S
        while not lock(handle.fileno()):
            if time.monotonic() > deadline:
                raise UsageError(f"another wiretape has held {directory / 'lock'} for {_LOCK_PATIENCE_S:.0f} s")
            time.sleep(0.02)
        yield  # closing the file gives the lock back


def trust_variables(environ: Mapping[str, str], ca: Path, directory: Path) -> dict[str, str]:
    """Every variable that makes a client trust `ca`, beside what it trusted before. Bundles go to `directory`."""
    ours = ca.read_bytes()
    variables, own = {}, environ.get("SSL_CERT_FILE")
    bundles: dict[str | None, str] = {}  # by the file that a variable names: most of them name none
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
    """Directories of PHP's settings: those that it reads anyway, and ours behind them.

    Its default stands as an empty one in such a list; a variable that is set to nothing names none at all.
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
    """The certificates that upstreams are checked against: whatever some client of this user would have trusted."""
    parts = [_contents([environ.get(name)]) for name in (*REPLACING, *ADDING)]
    if not _contents([environ.get("SSL_CERT_FILE")]):
        parts.insert(0, default_bundle())
    return _bundle(list(dict.fromkeys(parts)), directory)


def _contents(paths: Iterable[str | None]) -> bytes:
    """The first of these files that can be read; a variable that names a missing file counts as not set."""
    for path in paths:
        if not path:
            continue
        try:
            return Path(path).read_bytes()
        except OSError:
            continue
    return b""


def trust_files(environ: Mapping[str, str]) -> list[str | None]:
    """Every file from which clients of this user may take the certificates that they trust."""
    paths = ssl.get_default_verify_paths()
    named = [environ.get(name) for name in (*REPLACING, *ADDING)]
    return [*named, paths.cafile, paths.openssl_cafile, *_SYSTEM_BUNDLES, _certifis()]


def default_bundle() -> bytes:
    """What clients trust when no variable is set: the system's certificates and certifi's, which Python clients use."""
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
    """A file with these certificates."""
    return keep(b"\n".join(part.rstrip() + b"\n" for part in parts if part.strip()), directory, "bundle", ".pem")


def keep(data: bytes, directory: Path, name: str, ending: str) -> Path:
    """A file that holds this, named by its content: written once, and never changed under a reader."""
    path = directory / f"{name}-{hashlib.sha256(data).hexdigest()[:16]}{ending}"
    if not path.exists():
        try:
            rewrite(path, [data], PRIVATE)
        except OSError as error:
            raise UsageError(f"cannot write the certificates {path}: {error.strerror or error}") from error
    return path
