from __future__ import annotations

import stat
from pathlib import Path

import pytest
from tests.support.authorities import make_wiretapes_authority

from wiretape.adapters.authority import CERTIFICATE, KEY, expiry
from wiretape.adapters.mitm_ca import ensure_ca
from wiretape.errors import UsageError


def other(tmp_path: Path) -> Path:
    directory = tmp_path / "other"
    directory.mkdir()
    make_wiretapes_authority(directory, 30)
    return directory


def test_a_good_authority_is_used_as_it_is(tmp_path: Path) -> None:
    expires = make_wiretapes_authority(tmp_path, 30)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert ensure_ca(tmp_path) == tmp_path / CERTIFICATE
    assert expiry(tmp_path) == pytest.approx(expires, abs=1)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.name != "lock"} == before


@pytest.mark.parametrize("left", [None, b""], ids=["gone", "empty"])
def test_a_lost_certificate_is_taken_from_beside_the_key(tmp_path: Path, left: bytes | None) -> None:
    make_wiretapes_authority(tmp_path, 30)
    path = tmp_path / CERTIFICATE
    before = path.read_bytes()
    path.unlink() if left is None else path.write_bytes(left)
    assert ensure_ca(tmp_path).read_bytes() == before


@pytest.mark.parametrize("certificate", [True, False])
def test_a_key_that_is_none_is_named_and_how_to_mend_it(tmp_path: Path, certificate: bool) -> None:
    make_wiretapes_authority(tmp_path, 30)
    if not certificate:
        (tmp_path / CERTIFICATE).unlink()
    (tmp_path / KEY).write_text("bad")
    with pytest.raises(UsageError) as told:
        ensure_ca(tmp_path)
    said, step = str(told.value).splitlines()
    assert said.startswith(f"{tmp_path / KEY} cannot be used: ")
    assert step == f"  remove {tmp_path}: the next recording makes a new authority"


def test_a_key_with_a_password_is_refused_and_nobody_is_asked(tmp_path: Path) -> None:
    make_wiretapes_authority(tmp_path, 30)
    from cryptography.hazmat.primitives import serialization

    pem = (tmp_path / KEY).read_bytes()
    locked = serialization.load_pem_private_key(pem, None).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.BestAvailableEncryption(b"x")
    )
    (tmp_path / KEY).write_bytes(locked + (tmp_path / CERTIFICATE).read_bytes())
    with pytest.raises(ValueError, match="its key has a password"):
        expiry(tmp_path)


def test_the_certificate_of_another_key_is_refused(tmp_path: Path) -> None:
    make_wiretapes_authority(tmp_path, 30)
    (tmp_path / CERTIFICATE).write_bytes((other(tmp_path) / CERTIFICATE).read_bytes())
    said = f"{tmp_path / CERTIFICATE} is not the certificate that signs, which stands in {tmp_path / KEY}"
    with pytest.raises(UsageError) as told:
        ensure_ca(tmp_path)
    assert str(told.value).splitlines()[0] == said


def test_lines_that_end_otherwise_are_no_difference(tmp_path: Path) -> None:
    expires = make_wiretapes_authority(tmp_path, 30)
    path = tmp_path / CERTIFICATE
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert expiry(tmp_path) == pytest.approx(expires, abs=1)


def test_an_expired_authority_signs_nothing(tmp_path: Path) -> None:
    make_wiretapes_authority(tmp_path, -1)
    with pytest.raises(UsageError, match=r"expired on .*: no client would trust it\n  remove "):
        ensure_ca(tmp_path)


def test_keys_can_be_read_by_their_user_alone(tmp_path: Path) -> None:
    ensure_ca(tmp_path)
    (tmp_path / KEY).chmod(0o644)  # a copy, or another umask
    ensure_ca(tmp_path)
    keys = [tmp_path / KEY, tmp_path / "mitmproxy-ca.p12"]
    assert [stat.S_IMODE(key.stat().st_mode) for key in keys] == [0o600, 0o600]
