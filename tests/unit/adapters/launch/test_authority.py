from __future__ import annotations

import stat
from pathlib import Path

import pytest
from tests.support.authorities import make_wiretapes_authority

from wiretape.adapters.launch.authority import CERTIFICATE, KEY, certificates, validity
from wiretape.adapters.mitm.ca import ensure_ca
from wiretape.errors import UsageError


def other(tmp_path: Path) -> Path:
    directory = tmp_path / "other"
    directory.mkdir()
    make_wiretapes_authority(directory, 40)
    return directory


def test_a_good_authority_is_used_as_it_is(tmp_path: Path) -> None:
    expires = make_wiretapes_authority(tmp_path, 40)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert ensure_ca(tmp_path) == tmp_path / CERTIFICATE
    assert validity(tmp_path).expires == pytest.approx(expires, abs=1)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.name != "lock"} == before


@pytest.mark.parametrize("left", [None, b""], ids=["gone", "empty"])
def test_a_lost_certificate_is_taken_from_beside_the_key(tmp_path: Path, left: bytes | None) -> None:
    make_wiretapes_authority(tmp_path, 40)
    path = tmp_path / CERTIFICATE
    before = path.read_bytes()
    path.unlink() if left is None else path.write_bytes(left)
    assert ensure_ca(tmp_path).read_bytes() == before


@pytest.mark.parametrize("certificate", [True, False])
def test_a_key_that_is_none_is_named_and_how_to_mend_it(tmp_path: Path, certificate: bool) -> None:
    make_wiretapes_authority(tmp_path, 40)
    if not certificate:
        (tmp_path / CERTIFICATE).unlink()
    (tmp_path / KEY).write_text("bad")
    with pytest.raises(UsageError) as told:
        ensure_ca(tmp_path)
    said, step = str(told.value).splitlines()
    assert said.startswith(f"{tmp_path / KEY} cannot be used: ")
    assert step == "  to make a new one: wiretape doctor --remove-ca"


def test_a_key_with_a_password_is_refused_and_nobody_is_asked(tmp_path: Path) -> None:
    make_wiretapes_authority(tmp_path, 40)
    from cryptography.hazmat.primitives import serialization

    pem = (tmp_path / KEY).read_bytes()
    locked = serialization.load_pem_private_key(pem, None).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.BestAvailableEncryption(b"x")
    )
    (tmp_path / KEY).write_bytes(locked + (tmp_path / CERTIFICATE).read_bytes())
    with pytest.raises(ValueError, match="its key has a password"):
        validity(tmp_path)


def test_the_certificate_of_another_key_is_refused(tmp_path: Path) -> None:
    make_wiretapes_authority(tmp_path, 40)
    (tmp_path / CERTIFICATE).write_bytes((other(tmp_path) / CERTIFICATE).read_bytes())
    said = f"{tmp_path / CERTIFICATE} is not the certificate of the key in {tmp_path / KEY}"
    with pytest.raises(UsageError) as told:
        ensure_ca(tmp_path)
    assert str(told.value).splitlines()[0] == said


def test_lines_that_end_otherwise_are_no_difference(tmp_path: Path) -> None:
    expires = make_wiretapes_authority(tmp_path, 40)
    path = tmp_path / CERTIFICATE
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert validity(tmp_path).expires == pytest.approx(expires, abs=1)


DAY = 24 * 3600


def ensured(directory: Path, environ: dict[str, str], now: float) -> tuple[bytes, list[str]]:
    """The certificate that is used, and what is told of it."""
    told: list[str] = []
    return ensure_ca(directory, environ, told.append, lambda: now).read_bytes(), told


def test_a_new_authority_is_valid_for_a_year(tmp_path: Path) -> None:
    pytest.importorskip("cryptography", reason="certificates are made with cryptography")
    now = 1_800_000_000.0
    _, told = ensured(tmp_path, {}, now)
    made = validity(tmp_path)
    assert (made.expires - made.begins, now - made.begins) == (365 * DAY, 2 * DAY)
    assert told == []
    assert oct((tmp_path / KEY).stat().st_mode & 0o777) == "0o600"


@pytest.mark.parametrize(
    ("days", "lifetime", "renewed"),
    [(31, 365, False), (29, 365, True), (-1, 365, True), (3650 - 300, 3650, False), (3650 - 340, 3650, True)],
    ids=["in time", "30 days before", "expired", "of 0.1, in its first year", "of 0.1, a year old"],
)
def test_an_authority_is_renewed_before_its_year_is_over(
    tmp_path: Path, days: int, lifetime: int, renewed: bool
) -> None:
    expires = make_wiretapes_authority(tmp_path, days, lifetime)
    before = (tmp_path / CERTIFICATE).read_bytes()
    after, told = ensured(tmp_path, {}, expires - days * DAY)
    assert (after != before, len(told)) == (renewed, int(renewed))
    assert all("is renewed" in text for text in told)
    assert ensured(tmp_path, {}, expires - days * DAY) == (after, [])
    assert certificates((tmp_path / KEY).read_bytes()) == certificates(after)


def test_an_authority_that_the_user_trusts_is_kept_until_it_expires_and_that_is_told(tmp_path: Path) -> None:
    directory = tmp_path / "state"
    directory.mkdir()
    expires = make_wiretapes_authority(directory, 365)
    before = (directory / CERTIFICATE).read_bytes()
    bundle = tmp_path / "bundle.pem"
    bundle.write_bytes(b"# mine\n" + before.replace(b"\n", b"\r\n"))
    environ = {"SSL_CERT_FILE": str(bundle)}
    assert ensured(directory, environ, expires - 31 * DAY) == (before, [])
    after, told = ensured(directory, environ, expires - 29 * DAY)
    assert after == before
    assert f"it is kept until then, because {bundle} contains it" in told[0]
    assert "wiretape doctor --remove-ca" in told[0]
    after, told = ensured(directory, environ, expires + 1)
    assert after != before
    assert f"{bundle} contains it" in told[0]


def test_a_bundle_of_wiretapes_own_is_no_trust_of_the_users(tmp_path: Path) -> None:
    expires = make_wiretapes_authority(tmp_path, 365)
    before = (tmp_path / CERTIFICATE).read_bytes()
    (tmp_path / "bundle-1.pem").write_bytes(before)
    after, _ = ensured(tmp_path, {"SSL_CERT_FILE": str(tmp_path / "bundle-1.pem")}, expires - DAY)
    assert after != before


def test_keys_can_be_read_by_their_user_alone(tmp_path: Path) -> None:
    ensure_ca(tmp_path)
    (tmp_path / KEY).chmod(0o644)  # a copy, or another umask
    ensure_ca(tmp_path)
    assert stat.S_IMODE((tmp_path / KEY).stat().st_mode) == 0o600
