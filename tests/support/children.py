"""Child processes that call a model: a small client, and the ways in which Python starts them, as source texts."""

from __future__ import annotations

from typing import Final

CLIENT: Final = '''
import http.client, json, os, sys
from urllib.parse import urlsplit

def ask(text, how):
    """Print what the model says: at the base URL of the environment, or at the address that is known, by a proxy."""
    body = json.dumps({"model": "counting-1", "messages": [{"role": "user", "content": text}]})
    url = os.environ.get("OPENAI_BASE_URL") if how == "base URL" else None
    url = (url or DEFAULT) + "/chat/completions"
    place, path = urlsplit(url), urlsplit(url).path
    proxy = os.environ.get("http_proxy") if how == "proxy" else None
    if proxy:
        place, path = urlsplit(proxy), url
    connection = http.client.HTTPConnection(place.hostname, place.port, timeout=60)
    try:
        connection.request("POST", path, body, {"content-type": "application/json", "host": urlsplit(url).netloc})
        response = connection.getresponse()
        said = json.load(response)
        return said["choices"][0]["message"]["content"] if response.status == 200 else f"refused {response.status}"
    except OSError as error:
        return f"refused {error!r}"
    finally:
        connection.close()

def tell(out, text, how):
    with open(out, "a") as file:
        file.write(ask(text, how) + "\\n")

if __name__ == "__main__":
    tell(*sys.argv[1:])
'''

# Each starts `CMD` (a list), or a copy of this process that calls `client.tell(*CMD[-3:])`, and waits for its end.
ROUTES: Final = {
    "subprocess.run": "subprocess.run(CMD, check=True)",
    "subprocess.run, shell": "subprocess.run(shlex.join(CMD), shell=True, check=True)",
    "subprocess.Popen": "assert subprocess.Popen(CMD, stdout=subprocess.DEVNULL).wait() == 0",
    "subprocess, posix_spawn": "subprocess.run(CMD, check=True, close_fds=False)",
    "subprocess, preexec_fn": "subprocess.run(CMD, check=True, preexec_fn=lambda: None)",
    "asyncio exec": "asyncio.run(waited(asyncio.create_subprocess_exec(*CMD)))",
    "asyncio shell": "asyncio.run(waited(asyncio.create_subprocess_shell(shlex.join(CMD))))",
    "os.system": "assert os.system(shlex.join(CMD)) == 0",
    "os.popen": "os.popen(shlex.join(CMD)).close()",
    "os.spawnv": "assert os.spawnv(os.P_WAIT, CMD[0], CMD) == 0",
    "os.spawnlp": "assert os.spawnlp(os.P_WAIT, CMD[0], *CMD) == 0",
    "os.posix_spawn": "ended(os.posix_spawn(CMD[0], CMD, os.environ))",
    "os.posix_spawnp": "ended(os.posix_spawnp(CMD[0], CMD, os.environ))",
    "os.fork, os.execv": "ended(os.fork() or os.execv(CMD[0], CMD))",
    "os.fork, os.execlp": "ended(os.fork() or os.execlp(CMD[0], *CMD))",
    "pty.spawn": "assert pty.spawn(CMD, lambda fd: b'') == 0",
    "multiprocessing spawn": "started('spawn')",
    "multiprocessing forkserver": "started('forkserver')",
    "multiprocessing fork": "started('fork')",
    "ProcessPoolExecutor": "concurrent.futures.ProcessPoolExecutor(1, SPAWN).submit(client.tell, *CMD[-3:]).result()",
    "os.fork": "ended(os.fork() or copied())",
    "os.fork, subprocess": "ended(os.fork() or os._exit(subprocess.run(CMD).returncode))",
    "a thread": "in_a_thread(lambda: subprocess.run(CMD, check=True))",
}
# The same with a separate environment, ENV.
ROUTES_WITH_ENVIRONMENT: Final = {
    "subprocess.run": "subprocess.run(CMD, env=ENV, check=True)",
    "subprocess.run, shell": "subprocess.run(shlex.join(CMD), shell=True, env=ENV, check=True)",
    "subprocess, posix_spawn": "subprocess.run(CMD, env=ENV, check=True, close_fds=False)",
    "asyncio exec": "asyncio.run(waited(asyncio.create_subprocess_exec(*CMD, env=ENV)))",
    "os.spawnve": "assert os.spawnve(os.P_WAIT, CMD[0], CMD, ENV) == 0",
    "os.posix_spawn": "ended(os.posix_spawn(CMD[0], CMD, ENV))",
    "os.fork, os.execve": "ended(os.fork() or os.execve(CMD[0], CMD, ENV))",
    "os.fork, os.execle": "ended(os.fork() or os.execle(CMD[0], *CMD, ENV))",
}
HEAD: Final = """
import asyncio, concurrent.futures, contextlib, multiprocessing, os, pty, shlex, subprocess, sys, threading
from pathlib import Path

import client
import pytest

SPAWN = multiprocessing.get_context("spawn")

async def waited(starting):
    assert await (await starting).wait() == 0

def ended(pid):
    assert os.waitpid(pid, 0)[1] == 0

def command(out, text, how):
    return [sys.executable, "-S", client.__file__, str(out), text, how]

def in_a_thread(function):
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()
"""
# Inside a test: what the routes name.
BODY: Final = """
    CMD = command(out, text, how)
    def started(method):
        process = multiprocessing.get_context(method).Process(target=client.tell, args=CMD[-3:])
        process.start()
        process.join()
        assert process.exitcode == 0
    def copied():
        client.tell(*CMD[-3:])
        os._exit(0)
"""


def function(name: str, route: str, env: str = "None") -> str:
    """A function that starts a child by a route with its own environment and returns the child's answers.

    `os.environ` must be the same after it.
    """
    return (
        f"def {name}(out, text, how):\n    ENV = {env}{BODY}    before = dict(os.environ)\n    {route}\n"
        "    assert dict(os.environ) == before\n    return Path(out).read_text().strip()\n"
    )
