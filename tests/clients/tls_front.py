"""Gives host names of real providers to a mock on this machine, in TLS, then runs a program.

    tls_front.py MOCK_PORT HOST... -- COMMAND...

Only for a mount and network namespace of its own: /etc/hosts is bound over, and port 443 of loopback is taken. The
program trusts the certificate through SSL_CERT_FILE, as it would a company's own authority.
"""

from __future__ import annotations

import asyncio
import os
import signal
import ssl
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    with suppress(OSError):
        writer.close()


async def serve_and_run(port: int, context: ssl.SSLContext, command: list[str]) -> int:
    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            mock_reader, mock_writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:  # the mock is stopped, as in a replay
            writer.close()
            return
        await asyncio.gather(pump(reader, mock_writer), pump(mock_reader, writer))

    server = await asyncio.start_server(connection, "127.0.0.1", 443, ssl=context)
    program = await asyncio.create_subprocess_exec(*command)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, program.terminate)
    code = await program.wait()
    server.close()
    return code


def main() -> int:
    split = sys.argv.index("--")
    port, hosts, command = int(sys.argv[1]), sys.argv[2:split], sys.argv[split + 1 :]
    sys.path.insert(0, str(ROOT))
    from tests.support.certificates import make_authority

    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        names = directory / "hosts"
        names.write_text("127.0.0.1 localhost\n" + "".join(f"127.0.0.1 {host}\n" for host in hosts))
        subprocess.check_call(["mount", "--bind", str(names), "/etc/hosts"])
        authority, context = make_authority(directory, *hosts)
        system = Path("/etc/ssl/certs/ca-certificates.crt")
        bundle = directory / "bundle.pem"
        bundle.write_bytes(authority.read_bytes() + (system.read_bytes() if system.exists() else b""))
        os.environ["SSL_CERT_FILE"] = str(bundle)
        return asyncio.run(serve_and_run(port, context, command))


if __name__ == "__main__":
    sys.exit(main())
