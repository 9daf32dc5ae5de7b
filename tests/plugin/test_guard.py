"""While a test runs from its tape the network is refused to it, also where no door looks."""

from __future__ import annotations

import pytest
from tests.support.counting import CountingModel
from tests.support.projects import Project

# What a program may do, and the host that the refusal names.
WAYS = {
    "socket.create_connection(ADDRESS)": "127.0.0.1:{port}",
    "closing(lambda s: s.connect(ADDRESS))": "127.0.0.1:{port}",
    "closing(lambda s: s.connect_ex(ADDRESS))": "127.0.0.1:{port}",
    "closing(lambda s: s.sendto(b'x', ADDRESS), type=socket.SOCK_DGRAM)": "127.0.0.1:{port}",
    "closing(lambda s: s.sendmsg([b'x'], [], 0, ADDRESS), type=socket.SOCK_DGRAM)": "127.0.0.1:{port}",
    "closing(lambda s: s.connect(('::1', 80)), family=socket.AF_INET6)": "::1:80",
    "asyncio.run(asyncio.open_connection(*ADDRESS))": "127.0.0.1:{port}",
    "socket.getaddrinfo('models.example', 443)": "models.example:443",
    "socket.gethostbyname('models.example')": "models.example",
    "asyncio.run(asyncio.open_connection('models.example', 443))": "models.example:443",
    "in_a_thread(lambda: socket.create_connection(ADDRESS))": "127.0.0.1:{port}",
}
HEAD = """
    import asyncio, contextlib, socket, threading, urllib.request
    from urllib.parse import urlsplit
    URL = os.environ["MODEL_URL"]
    ADDRESS = (urlsplit(URL).hostname, urlsplit(URL).port)
    def closing(use, **kind):
        with socket.socket(**kind) as sock:
            use(sock)
    def in_a_thread(function):
        errors = []
        def run():
            try:
                function()
            except Exception as error:
                errors.append(error)
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        if errors:
            raise errors[0]
"""


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_a_connection_outside_the_tape_is_refused_and_named(project: Project, model: CountingModel, way: str) -> None:
    project.write(f"""{HEAD}
    @pytest.mark.wiretape
    def test_one():
        {way}
    """)
    result = project.run()
    result.assert_outcomes(failed=1)
    named = WAYS[way].format(port=model.url.split(":")[2].removesuffix("/v1"))
    host = named.rpartition(":")[0] or named
    result.stdout.fnmatch_lines(
        [
            f"*{named} is not on the tape: test_it.py::test_one runs from a tape, and its network access is blocked*",
            f'*to allow this host: @pytest.mark.wiretape(allow_hosts=?"{host}"?)*',
        ]
    )
    assert model.asked == []


@pytest.mark.parametrize("where", ["marker", "configuration", "with its port"])
def test_what_is_allowed_gets_through_also_at_the_doors(project: Project, model: CountingModel, where: str) -> None:
    glob = model.url.removeprefix("http://").removesuffix("/v1") if where == "with its port" else "localhost"
    door = "127.0.0.1" if where != "with its port" else glob
    if where == "configuration":
        project.configure("wiretape_allow_hosts =", f"    {glob}", f"    {door}")
    project.write(f"""{HEAD}
    @pytest.mark.wiretape({f"allow_hosts=[{glob!r}, {door!r}]" if where != "configuration" else ""})
    def test_one(wiretape):
        socket.create_connection(ADDRESS).close()
        urllib.request.urlopen(URL + "/page").close()
        assert httpx.get(URL + "/page").text == "a page"
        assert wiretape.report.passed
    """)
    project.run().assert_outcomes(passed=1)
    assert model.asked == ["/v1/page", "/v1/page"]


def test_sockets_that_reach_nobody_are_not_touched(project: Project) -> None:
    project.write(f"""{HEAD}
    async def nap():
        server = await asyncio.start_server(lambda r, w: None, "127.0.0.1", 0)
        await asyncio.sleep(0)
        server.close()
        await server.wait_closed()
    @pytest.mark.wiretape
    def test_one(tmp_path, monkeypatch):
        one, other = socket.socketpair()
        one.send(b"x")
        assert other.recv(1) == b"x"
        one.close(), other.close()
        asyncio.run(nap())
        monkeypatch.chdir(tmp_path)
        with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
            server.bind("s")
            server.listen()
            client.connect("s")
        assert socket.getaddrinfo("127.0.0.1", 80) and socket.getaddrinfo(None, 0)
        socket.getfqdn("127.0.0.1")
    """)
    project.run().assert_outcomes(passed=1)


def test_the_guard_is_gone_behind_the_test_and_stands_before_no_other(project: Project, model: CountingModel) -> None:
    project.write(f"""{HEAD}
    def test_before():
        socket.create_connection(ADDRESS).close()
    @pytest.mark.wiretape
    def test_one():
        with pytest.raises(ConnectionRefusedError, match="is not on the tape"):
            socket.create_connection(ADDRESS)
    def test_behind():
        assert "connect" not in socket.socket.__dict__
        socket.create_connection(ADDRESS).close()
        assert httpx.get(URL + "/page").text == "a page"
    """)
    project.run().assert_outcomes(passed=3)


def test_a_recording_test_may_reach_everything(project: Project, model: CountingModel) -> None:
    project.write(f"""{HEAD}
    @pytest.mark.wiretape
    def test_one():
        said("hello")
        urllib.request.urlopen(URL + "/page").close()
    """)
    project.run("--wiretape-mode=once").assert_outcomes(passed=1)


def test_a_swallowed_refusal_is_listed(project: Project) -> None:
    project.write(f"""{HEAD}
    @pytest.mark.wiretape
    def test_one():
        with contextlib.suppress(OSError):
            socket.create_connection(("telemetry.example", 443))
    """)
    result = project.run("-v")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        ["test_it.py::test_one sent requests that are not on its tape:", "  telemetry.example:443: refused"]
    )


def test_a_model_that_was_asked_past_every_door_fails_the_test_even_if_that_was_swallowed(project: Project) -> None:
    project.write(f"""{HEAD}
    @pytest.mark.wiretape
    def test_one():
        with contextlib.suppress(OSError):
            socket.create_connection(("api.openai.com", 443))
    """)
    result = project.run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["api.openai.com:443 is not on the tape: *"])


WIDER = (
    HEAD
    + """
    @pytest.fixture(scope="module", params=["hidden", "raised"])
    def agent(request):
        try:
            urllib.request.urlopen("https://api.openai.com/v1/models")
        except OSError:
            if request.param == "raised":
                raise RuntimeError("Connection error.")
        yield

    @pytest.mark.wiretape
    def test_one(agent):
        pass
"""
)


def test_a_fixture_of_a_wider_scope_asks_no_model_before_the_tape_is_open(project: Project) -> None:
    project.write(WIDER)
    result = project.run()
    result.assert_outcomes(errors=2)
    before = (
        "api.openai.com:443 was called before the tape of test_it.py::test_one?{}? was open, by a fixture of a wider *"
    )
    result.stdout.fnmatch_lines([before.format("hidden"), before.format("raised")])
    result.stdout.no_fnmatch_line("RuntimeError*")


@pytest.mark.parametrize("scope", ["session", "function"])
def test_a_client_that_is_made_before_the_tape_is_open_and_lacks_its_key_is_told_from_one_behind_it(
    project: Project, scope: str
) -> None:
    project.write(f"""
        @pytest.fixture(scope={scope!r})
        def client():
            raise RuntimeError("set NO_SUCH_API_KEY")

        @pytest.mark.wiretape
        def test_one(client):
            pass
    """)
    result = project.run()
    result.assert_outcomes(errors=1)
    advice = "*dummy keys are not set yet: give that fixture the scope of the test*"
    if scope == "session":
        result.stdout.fnmatch_lines(["*before the tape of test_it.py::test_one was open*", advice])
    else:
        result.stdout.no_fnmatch_line(advice)


def test_a_fixture_of_a_wider_scope_may_have_a_tape_of_its_own_and_reach_other_hosts(
    project: Project, model: CountingModel
) -> None:
    project.write(f"""{HEAD}
    import wiretape as tapes

    @pytest.fixture(scope="module")
    def agent():
        urllib.request.urlopen(URL + "/page").close()
        at = "captures/agent.tape"
        with tapes.replay(at) if os.path.exists(at) else tapes.record(at):
            yield said("who are you?")

    @pytest.mark.wiretape
    def test_one(agent, wiretape):
        assert (agent, said("hello")) == ("answer 2 to: who are you?", "answer 3 to: hello")
        assert wiretape.stats.calls == 1
    """)
    project.run("--wiretape-mode=once").assert_outcomes(passed=1)
    project.run().assert_outcomes(passed=1)
    assert model.asked == ["/v1/page", "who are you?", "hello", "/v1/page"]


def test_a_call_after_the_end_of_its_test_reaches_neither_the_model_nor_the_next_tape(
    project: Project, model: CountingModel
) -> None:
    project.write("""
        import threading
        started, heard = {}, []
        def late():
            started["go"].wait(30)
            heard.append(ask("late"))

        @pytest.mark.wiretape
        def test_one():
            started["go"] = threading.Event()
            started["thread"] = threading.Thread(target=late, name="latecomer")
            started["thread"].start()

        @pytest.mark.wiretape
        @pytest.mark.parametrize("mark", [1])
        def test_two(mark):
            started["go"].set()
            started["thread"].join()
            assert heard[0].status_code == 400
            said("hello")
    """)
    result = project.run("--wiretape-mode=once")
    result.assert_outcomes(passed=2)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert model.asked == ["hello"]
    result.stdout.fnmatch_lines(
        [
            "requests after the end of their test, which fail the run:",
            "  POST /v1/chat/completions was sent after the end of test_it.py::test_one",
            "    by the thread 'latecomer', which that test started; its tape is closed, and nothing is called live",
        ],
        consecutive=True,
    )
    assert project.tapes() == ["test_it/test_two[1].tape"]
