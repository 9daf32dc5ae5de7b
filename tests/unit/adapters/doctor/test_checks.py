from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.authorities import make_wiretapes_authority
from tests.support.sealing import need_sealing

from wiretape.adapters.doctor import checks
from wiretape.adapters.doctor.checks import (
    authority_check,
    base_url_checks,
    certificate_checks,
    directory_check,
    port_check,
    proxy_check,
    python_check,
    removed_authority,
    sealing_check,
    settings_check,
)
from wiretape.adapters.launch.trust import trust_variables
from wiretape.errors import UsageError


@pytest.fixture
def dead_port() -> int:
    """A port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        number: int = probe.getsockname()[1]
        return number


@pytest.fixture
def live_port() -> Iterator[int]:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        yield server.getsockname()[1]


def test_an_older_python_can_do_all_but_record() -> None:
    assert python_check((3, 12)).level == "ok"
    old = python_check((3, 11))
    assert (old.level, "recording needs 3.12" in old.said) == ("warn", True)


def test_no_authority_yet_is_no_fault(tmp_path: Path) -> None:
    check = authority_check(tmp_path, {}, 0)
    assert (check.level, "first recording" in check.said) == ("ok", True)


@pytest.mark.parametrize(("days", "level"), [(365, "ok"), (31, "ok"), (29, "warn"), (-1, "warn")])
def test_the_authoritys_expiry_is_told(tmp_path: Path, days: int, level: str) -> None:
    import time

    expires = make_wiretapes_authority(tmp_path, days)
    check = authority_check(tmp_path, {}, time.time())
    assert check.level == level
    assert time.strftime("%Y-%m-%d", time.gmtime(expires)) in check.said


def test_an_authority_that_is_trusted_by_hand_is_named_with_the_command_that_replaces_it(tmp_path: Path) -> None:
    directory = tmp_path / "state"
    directory.mkdir()
    expires = make_wiretapes_authority(directory, 10)
    bundle = tmp_path / "bundle.pem"
    bundle.write_bytes((directory / "mitmproxy-ca-cert.pem").read_bytes())
    check = authority_check(directory, {"CURL_CA_BUNDLE": str(bundle)}, expires - 9 * 24 * 3600)
    assert (check.level, check.next) == ("warn", "to make a new one: wiretape doctor --remove-ca")
    assert f"trusted in {bundle}" in check.said
    assert authority_check(directory, {}, expires - 9 * 24 * 3600).next == "the next recording renews it"


def test_the_authority_is_removed_and_what_is_left_to_do_is_said(tmp_path: Path) -> None:
    directory = tmp_path / "wiretape"
    directory.mkdir()
    make_wiretapes_authority(directory, 300)
    bundle = tmp_path / "bundle.pem"
    bundle.write_bytes((directory / "mitmproxy-ca-cert.pem").read_bytes())
    trust_variables({}, directory / "mitmproxy-ca-cert.pem", directory)
    (directory / "my.journal").write_text("another's")
    environ = {"XDG_STATE_HOME": str(tmp_path), "SSL_CERT_FILE": str(bundle)}
    lines = removed_authority(environ)
    assert sorted(path.name for path in directory.iterdir()) == ["lock", "my.journal"]
    assert f"{bundle} still trusts it: remove it there" in lines
    assert any("security delete-certificate -Z" in line for line in lines)
    assert removed_authority(environ) == [f"there is no certificate authority in {directory}"]


def test_a_broken_authority_says_how_to_make_another(tmp_path: Path) -> None:
    (tmp_path / "mitmproxy-ca-cert.pem").write_text("no certificate")
    (tmp_path / "mitmproxy-ca.pem").write_text("no key")
    check = authority_check(tmp_path, {}, 0)
    assert check.level == "fail"
    assert f"{tmp_path / 'mitmproxy-ca.pem'} cannot be used" in check.said
    assert check.next == "to make a new one: wiretape doctor --remove-ca"


def test_a_lost_certificate_is_no_fault_since_a_recording_writes_it(tmp_path: Path) -> None:
    make_wiretapes_authority(tmp_path, 365)
    (tmp_path / "mitmproxy-ca-cert.pem").unlink()
    check = authority_check(tmp_path, {}, 0)
    assert (check.level, "writes mitmproxy-ca-cert.pem again" in check.said) == ("ok", True)
    (tmp_path / "mitmproxy-ca.pem").write_text("no key")
    assert authority_check(tmp_path, {}, 0).level == "fail"


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's")
def test_an_authority_that_others_can_read_is_told(tmp_path: Path) -> None:
    import time

    make_wiretapes_authority(tmp_path, 365)
    (tmp_path / "mitmproxy-ca.pem").chmod(0o644)
    check = authority_check(tmp_path, {}, time.time())
    assert (check.level, check.next) == ("warn", f"chmod 600 {tmp_path / 'mitmproxy-ca.pem'}")


def test_a_trust_variable_that_names_no_file_is_told(tmp_path: Path) -> None:
    gone = str(tmp_path / "gone.pem")
    found = list(certificate_checks({"XDG_STATE_HOME": str(tmp_path), "SSL_CERT_FILE": gone}))
    assert [check.level for check in found if gone in check.said] == ["warn"]


def test_without_any_certificates_no_upstream_can_be_reached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "default_bundle", lambda: b"")
    found = list(certificate_checks({"XDG_STATE_HOME": str(tmp_path)}))
    assert [check.what for check in found if check.level == "fail"] == ["trust bundle"]


def test_a_state_directory_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    found = list(certificate_checks({"XDG_STATE_HOME": str(tmp_path / "file")}))
    assert [check.level for check in found] == ["fail"]
    assert "XDG_STATE_HOME" in (found[0].next or "")


def test_loopback_works_here() -> None:
    assert port_check().level == "ok"


def test_no_proxy_a_live_one_and_a_dead_one(live_port: int, dead_port: int) -> None:
    assert proxy_check({}).level == "ok"
    live = proxy_check({"HTTPS_PROXY": f"http://127.0.0.1:{live_port}"})
    assert (live.level, f"127.0.0.1:{live_port}" in live.said) == ("ok", True)
    dead = proxy_check({"HTTPS_PROXY": f"http://127.0.0.1:{dead_port}", "https_proxy": f"127.0.0.1:{dead_port}"})
    assert dead.level == "fail"
    assert "left over" in dead.said
    assert dead.next == "unset HTTPS_PROXY https_proxy, or start that proxy"


def test_a_socks_proxy_cannot_be_chained() -> None:
    assert proxy_check({"ALL_PROXY": "socks5://127.0.0.1:1080"}).level == "warn"


def test_a_base_url_that_a_recorder_left_behind_is_broken(dead_port: int) -> None:
    stale = {"OPENAI_BASE_URL": f"http://127.0.0.1:{dead_port}/api.openai.com/v1"}
    (check,) = base_url_checks(stale)
    assert (check.level, check.next) == ("fail", "unset OPENAI_BASE_URL")
    assert "left over from a recorder" in check.said


def test_a_local_model_server_that_is_not_running_is_told(dead_port: int, live_port: int) -> None:
    (dead,) = base_url_checks({"OLLAMA_BASE_URL": f"http://127.0.0.1:{dead_port}"})
    assert dead.level == "warn"
    (live,) = base_url_checks({"OLLAMA_BASE_URL": f"http://127.0.0.1:{live_port}"})
    assert live.level == "ok"


def test_a_base_url_that_is_none_is_told() -> None:
    found = list(base_url_checks({"OPENAI_BASE_URL": "api.deepseek.com"}))
    assert found[0].level == "warn"
    assert found[0].said.startswith("OPENAI_BASE_URL is not an http:// or https:// URL with a host")


def test_settings_that_cannot_be_read_are_a_fault(tmp_path: Path) -> None:
    assert settings_check(tmp_path).level == "ok"
    (tmp_path / "pyproject.toml").write_text("[tool.wiretape]\nmask = ['(']\n")
    check = settings_check(tmp_path)
    assert (check.level, "not a regular expression" in check.said) == ("fail", True)
    (tmp_path / "pyproject.toml").write_text("[tool.wiretape]\nmask = ['a', 'b']\n")
    assert "2 mask" in settings_check(tmp_path).said


def test_where_tapes_will_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert str(tmp_path) in directory_check(tmp_path).said
    (tmp_path / "captures").mkdir()
    assert directory_check(tmp_path).said.startswith(str(tmp_path / "captures"))
    monkeypatch.setattr("shutil.disk_usage", lambda path: type("Usage", (), {"free": 1024})())
    assert directory_check(tmp_path).level == "warn"


def test_a_directory_that_cannot_be_written_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(dir: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    check = directory_check(tmp_path)
    assert (check.level, "Permission denied" in check.said) == ("fail", True)


def test_whether_a_replay_can_be_sealed_is_tried() -> None:
    need_sealing()
    check = sealing_check()
    assert (check.level, check.what, check.next) == ("ok", "sealed replay", None)
    assert check.said.startswith("--sealed is available (")


def test_where_it_cannot_the_reason_and_the_next_step_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(places: object) -> None:
        raise UsageError("--sealed: this system lets nobody\n  do this\n  or leave --sealed out")

    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(checks, "make_sealed_network", refused)
    check = sealing_check()
    assert (check.level, check.said, check.next) == ("warn", "this system lets nobody", "do this")


def test_on_another_system_there_is_nothing_to_mend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert (sealing_check().level, sealing_check().next) == ("ok", None)
