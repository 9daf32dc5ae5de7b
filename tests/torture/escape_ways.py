"""Ways out of a replayed program. Prints, as JSON, what each way that is named reached: arguments are LOG and names."""

from __future__ import annotations

import asyncio
import ctypes
import json
import multiprocessing
import os
import smtplib
import socket
import ssl
import struct
import subprocess
import sys
import time
import urllib.request
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

FAR, FAR6, NEIGHBOUR = "10.99.0.1", "fd99::1", "10.99.0.7"
HOST = "api.openai.com"
URL = f"https://{HOST}/v1/chat/completions"
BODY = b'{"model":"gpt-5","messages":[{"role":"user","content":"not on the tape"}]}'
S = 3
SECRET = "the recorded answer"
WAYS: dict[str, Callable[[], Any]] = {}


def way(function: Callable[[], Any]) -> Callable[[], Any]:
    WAYS[function.__name__] = function
    return function


def base() -> str:
    return os.environ.get("OPENAI_BASE_URL", f"https://{HOST}/v1")


# Clients that obey variables


@way
def base_url() -> Any:
    request = urllib.request.Request(f"{base()}/chat/completions", BODY, {"content-type": "application/json"})
    return urllib.request.urlopen(request, timeout=S).read(40)


@way
def urllib_https() -> Any:
    return urllib.request.urlopen(urllib.request.Request(URL, BODY), timeout=S).read(40)


@way
def urllib_http() -> Any:
    return urllib.request.urlopen(f"http://{HOST}/v1/models", timeout=S).read(40)


@way
def requests_https() -> Any:
    import requests

    return requests.post(URL, data=BODY, timeout=S, verify=False).status_code


@way
def httpx_https() -> Any:
    import httpx

    return httpx.Client(verify=False, timeout=S).post(URL, content=BODY).status_code


@way
def httpx_ipv6() -> Any:
    import httpx

    return httpx.post(f"http://[{FAR6}]/v1/chat/completions", content=BODY, timeout=S).status_code


@way
def openai_client() -> Any:
    import openai

    client = openai.OpenAI(api_key="k", max_retries=0, timeout=S)
    return client.chat.completions.create(model="gpt-5", messages=[{"role": "user", "content": "not on the tape"}])


@way
def curl() -> Any:
    return subprocess.run(["curl", "-sk", f"-m{S}", "-d", "x", URL], capture_output=True).stdout[:60]


@way
def curl_tool() -> Any:
    return subprocess.run(["curl", "-sk", f"-m{S}", "http://tool.example.com/x"], capture_output=True).stdout[:60]


# Redirects and polling addresses, followed by clients that obey the base URL alone


def _followed(path: str, header: str = "") -> Any:
    import httpx

    with httpx.Client(trust_env=False, verify=False, timeout=S, follow_redirects=True) as client:
        answer = client.post(f"{base()}{path}", json={"model": "gpt-5", "messages": []})
        return client.get(answer.headers[header]).status_code if header in answer.headers else answer.status_code


def _fetched(path: str) -> Any:
    body = '{"model": "gpt-5", "messages": []}'
    sent = f"{{method: 'POST', headers: {{'content-type': 'application/json'}}, body: '{body}'}}"
    program = f"const a = await fetch(process.argv[1], {sent}); console.log(a.status)"
    environ = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
    environ["NODE_TLS_REJECT_UNAUTHORIZED"] = "0"
    command = ["node", "--input-type=module", "-e", program, f"{base()}{path}"]
    return subprocess.run(command, capture_output=True, env=environ, timeout=20).stdout


# Paths of the tape, each with the header and the value that it is answered with
LINKS = {
    "/absolute": ("location", f"https://{HOST}/v1/hop"),
    "/schemeless": ("location", f"//{HOST}/v1/hop"),
    "/plain": ("location", f"http://{HOST}/v1/hop"),
    "/foreign": ("location", "https://evil.example.com/v1/hop"),
    "/address": ("location", f"http://{FAR}/v1/hop"),
    "/ipv6": ("location", f"http://[{FAR6}]/v1/hop"),
    "/user": ("location", f"http://bob:secret@{FAR}/v1/hop"),
    "/signed": ("location", f"http://{FAR}/blob?sig=abc"),
    "/backslash": ("location", f"/\\{FAR}/v1/hop"),
    "/operation": ("operation-location", f"http://{FAR}/v1/operations/7"),
    "/azure": ("azure-asyncoperation", f"https://{HOST}/v1/operations/8"),
}


def _link_ways() -> None:
    for path, (header, _) in LINKS.items():
        name = path.removeprefix("/")
        WAYS[f"redirect_{name}"] = lambda path=path, header=header: _followed(path, header)
        if header == "location":
            WAYS[f"fetch_{name}"] = lambda path=path: _fetched(path)


_link_ways()


# Pages in a browser: what they read is logged as if it had arrived


def _page(log: Path, *lines: str, body: bytes = b"") -> Any:
    place = urlsplit(base())
    if place.hostname != "127.0.0.1":
        return None
    asked = json.dumps({"model": "gpt-5", "messages": [{"role": "user", "content": "hi"}]}).encode()
    head = f"POST {place.path}/chat/completions HTTP/1.1\r\ncontent-length: {len(asked)}\r\nconnection: close\r\n"
    with socket.create_connection(("127.0.0.1", place.port or 80), S) as talking:
        talking.sendall(head.encode() + "".join(f"{line}\r\n" for line in lines).encode() + b"\r\n" + asked)
        answer = b""
        while more := talking.recv(65536):
            answer += more
    if SECRET.encode() in answer:
        with log.open("a") as file:
            file.write("READ a recorded answer\n")
    return answer[:40]


LOG = Path(sys.argv[1] if len(sys.argv) > 1 else os.devnull)
WAYS["page_rebinding"] = lambda: _page(LOG, "host: evil.example.com")
WAYS["page_origin"] = lambda: _page(LOG, "host: 127.0.0.1", "origin: https://evil.example.com")


# Clients that obey no variables


@way
def httpx_without_environment() -> Any:
    import httpx

    return httpx.Client(trust_env=False, verify=False, timeout=S).post(URL, content=BODY).status_code


@way
def requests_without_environment() -> Any:
    import requests

    session = requests.Session()
    session.trust_env = False
    return session.post(URL, data=BODY, timeout=S, verify=False).status_code


@way
def no_proxy() -> Any:
    os.environ["NO_PROXY"] = os.environ["no_proxy"] = "*"
    return urllib_https()


@way
def aiohttp_client() -> Any:
    import aiohttp

    async def ask() -> int:
        limit = aiohttp.ClientTimeout(total=S)
        async with aiohttp.ClientSession(timeout=limit) as session, session.post(URL, data=BODY, ssl=False) as answer:
            return int(answer.status)

    return asyncio.run(ask())


@way
def websocket() -> Any:
    from websockets.sync.client import connect

    context = ssl._create_unverified_context()
    return connect(f"wss://{HOST}/v1/realtime", proxy=None, open_timeout=S, ssl=context)


@way
def curl_noproxy() -> Any:
    return subprocess.run(["curl", "-sk", f"-m{S}", "--noproxy", "*", "-d", "x", URL], capture_output=True).returncode


@way
def curl_ipv6() -> Any:
    return subprocess.run(["curl", "-6sk", f"-m{S}", "--noproxy", "*", URL], capture_output=True).returncode


# Sockets


def _connected(host: str, port: int = 443) -> Any:
    with socket.create_connection((host, port), S) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\n\r\n")
        return connection.recv(50)


WAYS["tcp_address"] = lambda: _connected(FAR)
WAYS["tcp_name"] = lambda: _connected(HOST)
WAYS["tcp_ipv6"] = lambda: _connected(FAR6)
WAYS["tcp_mapped"] = lambda: _connected(f"::ffff:{FAR}")
WAYS["database"] = lambda: _connected("db.internal", 5432)
WAYS["smtp"] = lambda: smtplib.SMTP(FAR, 5432, timeout=S)


@way
def connect_ex() -> Any:
    with socket.socket() as connecting:
        connecting.settimeout(S)
        return connecting.connect_ex((FAR, 443))


@way
def bound_first() -> Any:
    with socket.socket() as connecting:
        connecting.bind(("0.0.0.0", 0))
        connecting.settimeout(S)
        return connecting.connect((FAR, 443))


@way
def asyncio_connection() -> Any:
    async def connect() -> None:
        await asyncio.wait_for(asyncio.open_connection(FAR, 443), S)

    return asyncio.run(connect())


@way
def udp() -> Any:
    return socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"sendto", (FAR, 9999))


@way
def udp_connected() -> Any:
    sending = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sending.connect((FAR, 9999))
    return sending.send(b"connected")


@way
def udp_sendmsg() -> Any:
    return socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendmsg([b"sendmsg"], [], 0, (FAR, 9999))


@way
def udp_ipv6() -> Any:
    return socket.socket(socket.AF_INET6, socket.SOCK_DGRAM).sendto(b"ipv6", (FAR6, 9999))


@way
def udp_asyncio() -> Any:
    async def send() -> None:
        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_datagram_endpoint(asyncio.DatagramProtocol, remote_addr=(FAR, 9999))
        transport.sendto(b"asyncio")
        await asyncio.sleep(0.1)

    return asyncio.run(send())


@way
def fast_open() -> Any:
    with socket.socket() as sending:
        sending.settimeout(S)
        return sending.sendto(b"GET / HTTP/1.1\r\n\r\n", socket.MSG_FASTOPEN, (FAR, 443))


# Names


WAYS["getaddrinfo"] = lambda: socket.getaddrinfo(HOST, 443)
WAYS["gethostbyname"] = lambda: socket.gethostbyname("leak1.example.com")
WAYS["gethostbyname_ex"] = lambda: socket.gethostbyname_ex("leak2.example.com")
WAYS["gethostbyaddr"] = lambda: socket.gethostbyaddr(NEIGHBOUR)
WAYS["gethostbyaddr_ipv6"] = lambda: socket.gethostbyaddr("fd99::7")
WAYS["getnameinfo"] = lambda: socket.getnameinfo((NEIGHBOUR, 80), 0)
WAYS["getfqdn_name"] = lambda: socket.getfqdn("leak3.example.com")
WAYS["getfqdn_address"] = lambda: socket.getfqdn(NEIGHBOUR)


@way
def asyncio_getnameinfo() -> Any:
    async def look_up() -> Any:
        return await asyncio.get_running_loop().getnameinfo((NEIGHBOUR, 80))

    return asyncio.run(look_up())


# Below Python's socket module, and other processes


@way
def c_socket() -> Any:
    import _socket

    connecting = _socket.socket()
    connecting.settimeout(S)
    return connecting.connect((FAR, 443))


@way
def c_getaddrinfo() -> Any:
    import _socket

    return _socket.getaddrinfo("leak4.example.com", 443)


@way
def c_library() -> Any:
    library = ctypes.CDLL(None, use_errno=True)
    address = struct.pack("=H", 2) + struct.pack(">H", 443) + socket.inet_aton(FAR) + b"\0" * 8
    return library.connect(library.socket(2, 1, 0), address, 16)


@way
def bash() -> Any:
    script = f"exec 3<>/dev/tcp/{FAR}/443 && echo hi >&3"
    return subprocess.run(["bash", "-c", script], capture_output=True, timeout=S + 2).returncode


@way
def python_child() -> Any:
    program = f"import socket; socket.create_connection(({FAR!r}, 443), {S})"
    return subprocess.run([sys.executable, "-c", program], capture_output=True).returncode


@way
def forked() -> Any:
    process = multiprocessing.get_context("fork").Process(target=_quietly, args=(WAYS["tcp_address"],))
    process.start()
    process.join()
    return process.exitcode


def _quietly(function: Callable[[], Any]) -> str:
    try:
        return repr(function())[:80]
    except BaseException as error:
        return f"{type(error).__name__}: {error}"[:120]


def reached(names: list[str], log: Path) -> dict[str, list[str]]:
    """What arrived outside for each way."""
    warnings.simplefilter("ignore")
    environ, found = dict(os.environ), {}
    for name in names:
        before = len(log.read_text().splitlines())
        _quietly(WAYS[name])
        time.sleep(0.15)
        os.environ.clear()
        os.environ.update(environ)
        found[name] = log.read_text().splitlines()[before:]
    return found


if __name__ == "__main__":
    print(json.dumps(reached(sys.argv[2:] or list(WAYS), LOG)))
