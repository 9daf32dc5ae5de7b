"""The options and the trust store of a Java virtual machine."""

from __future__ import annotations

import base64
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.support.certificates import make_authority

from wiretape.adapters.launch.config_discovery import discover_config
from wiretape.adapters.launch.jvm import jvm_options, own_certificates, pem_certificates, read_store, write_store
from wiretape.adapters.launch.preparing import prepare

LED = {"HTTPS_PROXY": "http://127.0.0.1:8123"}
PROXY = (
    "-Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort=8123 -Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=8123"
    " -Dhttp.nonProxyHosts="
)
EMPTY = bytes.fromhex("feedfeed 00000002 00000000 e2686e45fb43dfa4d992dd41ceb6b21c6330d792")


def pem(content: bytes) -> str:
    text = base64.b64encode(content).decode()
    return f"-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n"


def test_without_a_proxy_or_a_bundle_there_is_nothing_to_say() -> None:
    assert jvm_options({}, {}) == ""
    assert jvm_options(LED, {}) == PROXY


def test_the_store_holds_the_machines_own_certificates_and_the_bundles(tmp_path: Path) -> None:
    home, bundle = tmp_path / "jdk", tmp_path / "bundle.pem"
    (home / "lib" / "security").mkdir(parents=True)
    (home / "lib" / "security" / "cacerts").write_bytes(write_store([b"one", b"two"]))
    bundle.write_text(f"# ours\n{pem(b'two')}{pem(b'three')}")
    options = jvm_options({**LED, "SSL_CERT_FILE": str(bundle)}, {"JAVA_HOME": str(home)}).split()
    name, _, store = options[5].partition("=")
    assert name == "-Djavax.net.ssl.trustStore"
    assert options[6:] == ["-Djavax.net.ssl.trustStorePassword=changeit", "-Djavax.net.ssl.trustStoreType=JKS"]
    assert Path(store).parent == tmp_path
    assert read_store(Path(store).read_bytes()) == [b"one", b"two", b"three"]


def test_a_store_that_the_user_named_goes_before_the_machines_own(tmp_path: Path) -> None:
    own = tmp_path / "own.jks"
    own.write_bytes(write_store([b"corp"]))
    environ = {"JAVA_TOOL_OPTIONS": f"-Xmx1g '-Djavax.net.ssl.trustStore={own}'", "PATH": ""}
    assert own_certificates(environ) == [b"corp"]
    (tmp_path / "a\\b").write_bytes(write_store([b"windows"]))
    named = f"-Djavax.net.ssl.trustStore={tmp_path}"
    assert own_certificates({"JAVA_TOOL_OPTIONS": rf"{named}\missing {named}/a\b", "PATH": ""}) == [b"windows"]
    own.write_bytes(b"damaged")
    assert own_certificates(environ) == []


@pytest.mark.parametrize(
    ("path", "written"),
    [
        ("/a b.pem", "'-Djavax.net.ssl.trustStore=/a b.pem'"),
        ("/o'brien/a.pem", """'-Djavax.net.ssl.trustStore=/o'"'"'brien/a.pem'"""),
        ('/a"b.pem', """'-Djavax.net.ssl.trustStore=/a"b.pem'"""),
        ("/a\\b.pem", "-Djavax.net.ssl.trustStore=/a\\b.pem"),
    ],
)
def test_a_path_is_quoted_as_a_jvm_reads_it(path: str, written: str) -> None:
    assert jvm_options({"SSL_CERT_FILE": path}, {}).startswith(f"{written} -D")


def test_a_store_is_as_the_format_has_it() -> None:
    assert write_store([]) == EMPTY
    assert read_store(write_store([b"a" * 300, b"b"])) == [b"a" * 300, b"b"]


@pytest.mark.parametrize("cut", [5, 20, 40, 49])
def test_a_store_that_is_cut_short_is_no_store(cut: int) -> None:
    with pytest.raises(ValueError, match="cut short"):
        read_store(write_store([b"abc"])[:cut])


def test_a_store_of_the_newer_form_is_read_too(tmp_path: Path) -> None:
    pkcs12 = pytest.importorskip("cryptography.hazmat.primitives.serialization.pkcs12")
    if not hasattr(pkcs12, "serialize_java_truststore"):
        pytest.skip("this version of cryptography makes no such store")
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding

    made = x509.load_pem_x509_certificate(make_authority(tmp_path)[0].read_bytes())
    data = pkcs12.serialize_java_truststore(
        [pkcs12.PKCS12Certificate(made, b"corp")], BestAvailableEncryption(b"secret")
    )
    (tmp_path / "own.p12").write_bytes(data)
    named = f"-Djavax.net.ssl.trustStore={tmp_path / 'own.p12'}"
    own = f"'{named}' -Djavax.net.ssl.trustStorePassword=secret"
    assert own_certificates({"JAVA_TOOL_OPTIONS": own, "PATH": ""}) == [made.public_bytes(Encoding.DER)]
    with pytest.raises(ValueError, match="not a readable store"):
        read_store(data)


def test_a_bundles_damaged_part_is_passed_over() -> None:
    damaged = "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n"
    assert list(pem_certificates(damaged + pem(b"x"))) == [b"x"]


@pytest.mark.skipif(shutil.which("keytool") is None, reason="Java's keytool is not installed")
def test_java_reads_the_store(tmp_path: Path) -> None:
    pytest.importorskip("cryptography")
    store = tmp_path / "trust.jks"
    store.write_bytes(write_store(list(pem_certificates(make_authority(tmp_path)[0].read_text()))))
    asked = ["keytool", "-J-Duser.language=en", "-list", "-keystore", str(store), "-storepass", "changeit"]
    done = subprocess.run(asked, capture_output=True, text=True, check=True)
    assert "contains 1 entry" in done.stdout
    assert "trustedCertEntry" in done.stdout


@pytest.mark.parametrize(
    ("argv", "own", "options"),
    [
        (["java", "-jar", "a.jar"], None, PROXY),
        (["java", "-jar", "a.jar"], "-Xmx1g", f"-Xmx1g {PROXY}"),
        (["make", "run"], None, None),
        (["make", "run"], "", PROXY),
        (["python", "a.py"], "", None),
    ],
)
def test_options_go_behind_the_users_own_and_where_no_jvm_is_seen_only_if_they_are_set(
    argv: list[str], own: str | None, options: str | None, tmp_path: Path
) -> None:
    environ = {} if own is None else {"JAVA_TOOL_OPTIONS": own}
    prepared = prepare(argv, discover_config(argv, environ, tmp_path), 8124, LED)
    assert prepared.variables.get("JAVA_TOOL_OPTIONS") == options
