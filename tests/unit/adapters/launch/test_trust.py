import os
import stat
import threading
from pathlib import Path

import pytest

from wiretape.adapters.launch.trust import (
    ADDING,
    PHP_SETTINGS,
    REPLACING,
    locked,
    state_directory,
    trust_variables,
    upstream_bundle,
)
from wiretape.errors import UsageError


@pytest.fixture
def ca(tmp_path: Path) -> Path:
    path = tmp_path / "ca.pem"
    path.write_text("OUR CA\n")
    return path


def test_a_replacing_variable_keeps_what_the_user_trusted(tmp_path: Path, ca: Path) -> None:
    own = tmp_path / "corp.pem"
    own.write_text("CORP CA")
    variables = trust_variables({"REQUESTS_CA_BUNDLE": str(own)}, ca, tmp_path)
    assert Path(variables["REQUESTS_CA_BUNDLE"]).read_text() == "CORP CA\n\nOUR CA\n"
    # What the user narrowed stays narrow, what they left alone keeps its default.
    assert "BEGIN CERTIFICATE" in Path(variables["SSL_CERT_FILE"]).read_text()
    assert "CORP CA" not in Path(variables["SSL_CERT_FILE"]).read_text()


def test_ssl_cert_file_stands_in_for_the_others(tmp_path: Path, ca: Path) -> None:
    own = tmp_path / "corp.pem"
    own.write_text("CORP CA")
    variables = trust_variables({"SSL_CERT_FILE": str(own)}, ca, tmp_path)
    for name in REPLACING:
        assert Path(variables[name]).read_text() == "CORP CA\n\nOUR CA\n", name


def test_an_adding_variable_gets_our_certificate_and_the_users_only(tmp_path: Path, ca: Path) -> None:
    own = tmp_path / "extra.pem"
    own.write_text("EXTRA CA")
    variables = trust_variables({"NODE_EXTRA_CA_CERTS": str(own)}, ca, tmp_path)
    assert Path(variables["NODE_EXTRA_CA_CERTS"]).read_text() == "EXTRA CA\n\nOUR CA\n"
    assert Path(variables["DENO_CERT"]).read_text() == "OUR CA\n"


def test_without_variables_the_defaults_are_kept(tmp_path: Path, ca: Path) -> None:
    variables = trust_variables({}, ca, tmp_path)
    assert set(variables) == {*REPLACING, *ADDING, PHP_SETTINGS}
    text = Path(variables["SSL_CERT_FILE"]).read_text()
    assert text.count("BEGIN CERTIFICATE") > 50
    assert text.endswith("OUR CA\n")


def test_a_variable_that_names_a_missing_file_counts_as_not_set(tmp_path: Path, ca: Path) -> None:
    variables = trust_variables({"SSL_CERT_FILE": str(tmp_path / "gone.pem")}, ca, tmp_path)
    assert "BEGIN CERTIFICATE" in Path(variables["SSL_CERT_FILE"]).read_text()


def test_php_reads_its_own_settings_and_behind_them_ours(tmp_path: Path, ca: Path) -> None:
    bundle = trust_variables({}, ca, tmp_path)["SSL_CERT_FILE"]
    default, ours = trust_variables({}, ca, tmp_path)[PHP_SETTINGS].split(os.pathsep)
    assert default == ""  # PHP's name for the directory that it was built with
    (file,) = Path(ours).iterdir()
    assert file.suffix == ".ini"
    assert file.read_text() == f'curl.cainfo = "{bundle}"\nopenssl.cafile = "{bundle}"\n'
    own = trust_variables({PHP_SETTINGS: f"/etc/php{os.pathsep}/srv/php"}, ca, tmp_path)[PHP_SETTINGS]
    assert own == os.pathsep.join(["/etc/php", "/srv/php", ours])
    assert trust_variables({PHP_SETTINGS: ""}, ca, tmp_path)[PHP_SETTINGS] == ours  # it reads none besides


def test_equal_bundles_are_one_file(tmp_path: Path, ca: Path) -> None:
    assert trust_variables({}, ca, tmp_path) == trust_variables({}, ca, tmp_path)
    assert len(list(tmp_path.glob("bundle-*.pem"))) == 2


def test_upstreams_are_checked_against_all_that_some_client_trusts(tmp_path: Path) -> None:
    (tmp_path / "corp.pem").write_text("CORP CA")
    (tmp_path / "node.pem").write_text("NODE CA")
    environ = {"SSL_CERT_FILE": str(tmp_path / "corp.pem"), "NODE_EXTRA_CA_CERTS": str(tmp_path / "node.pem")}
    assert upstream_bundle(environ, tmp_path).read_text() == "CORP CA\n\nNODE CA\n"
    assert "BEGIN CERTIFICATE" in upstream_bundle({}, tmp_path).read_text()


def test_the_state_directory_is_the_users_alone(tmp_path: Path) -> None:
    directory = state_directory({"XDG_STATE_HOME": str(tmp_path / "state")})
    assert directory == tmp_path / "state" / "wiretape"
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert state_directory({"HOME": str(tmp_path)}) == tmp_path / ".local" / "state" / "wiretape"


def test_a_state_directory_that_others_may_read_is_closed_to_them(tmp_path: Path) -> None:
    (tmp_path / "wiretape").mkdir(mode=0o755)
    directory = state_directory({"XDG_STATE_HOME": str(tmp_path)})
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    with locked(directory):
        assert stat.S_IMODE((directory / "lock").stat().st_mode) == 0o600


def test_a_state_directory_that_cannot_be_made_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="set XDG_STATE_HOME"):
        state_directory({"XDG_STATE_HOME": str(tmp_path / "file")})


def test_the_lock_lets_one_in_at_a_time(tmp_path: Path) -> None:
    inside, most = 0, 0

    def enter() -> None:
        nonlocal inside, most
        for _ in range(5):
            with locked(tmp_path):
                inside += 1
                most = max(most, inside)
                threading.Event().wait(0.002)
                inside -= 1

    threads = [threading.Thread(target=enter) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1
