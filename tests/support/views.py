"""Handmade reports and calls for the views, and a console of fixed width to print them on."""

from __future__ import annotations

import io
from datetime import UTC, datetime

from rich.console import Console, RenderableType

from wiretape.analyze.report import (
    AgentReport,
    CallReport,
    CauseReport,
    Finding,
    GroupReport,
    StatsReport,
    TurnReport,
    UsageSum,
)
from wiretape.model.call import (
    Block,
    CallError,
    CallRequest,
    CallResponse,
    Finish,
    Message,
    ModelCall,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    ToolSpec,
    Usage,
)
from wiretape.model.http import Ended, Exchange, Headers, JsonBody, Request, Response
from wiretape.model.jsonvalue import JsonObject
from wiretape.model.run import Agent, Cause, CauseKind, Run, Step, Thread, Turn
from wiretape.tape.format.documents import Header
from wiretape.views.terminal import TapeConsole

UNSAID = UsageSum(unknown_calls=1, unknown=dict.fromkeys(("input", "cached", "cache_write", "output", "reasoning"), 1))


def plain_console(width: int = 80) -> Console:
    return TapeConsole(file=io.StringIO(), width=width, color_system=None, markup=False, emoji=False, highlight=False)


def shown(what: RenderableType, width: int = 80) -> str:
    """What a person sees on a terminal of this width, without colour."""
    console = plain_console(width)
    console.print(what)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def step(
    call: int,
    agent: str = "root",
    *,
    kind: CauseKind = "turn_start",
    cause_call: int | None = None,
    cause_tools: tuple[str, ...] = (),
    why: str = "first call of the turn",
    tools: tuple[str, ...] = (),
    usage: UsageSum | None = None,
    finish: str | None = None,
    status: int | None = 200,
    ended: str | None = "complete",
    model: str | None = "deepseek-flash",
    duration_ms: int | None = 1200,
    first_token_ms: int | None = None,
) -> CallReport:
    return CallReport(
        call=call,
        exchange=call,
        agent=agent,
        thread=0,
        model=model,
        requested_model=model,
        format="openai.responses",
        finish=finish or ("tool_calls" if tools else "stop"),
        status=status,
        ended=ended,
        usage=usage,
        tool_calls=list(tools),
        duration_ms=duration_ms,
        first_token_ms=first_token_ms,
        at_ms=call * 1000,
        why=why,
        cause=CauseReport(kind=kind, call=cause_call, tools=list(cause_tools)),
    )


def subagents_report() -> StatsReport:
    """One request that took four calls: two of the supervisor, two of the calendar agent, which gave no usage."""
    first = UsageSum(input=347, output=75, reasoning=18, unknown={"cached": 1, "cache_write": 1})
    last = UsageSum(input=462, cached=256, output=31, unknown={"cache_write": 1, "reasoning": 1})
    usage = UsageSum(
        input=809,
        cached=256,
        output=106,
        reasoning=18,
        unknown_calls=2,
        unknown={"input": 2, "cached": 3, "cache_write": 4, "output": 2, "reasoning": 3},
    )
    steps = [
        step(1, usage=first, tools=("schedule_event",), duration_ms=1746),
        step(
            2,
            "schedule_event",
            kind="subagent",
            cause_call=1,
            why="the first call of subagent schedule_event, started by call 1's schedule_event",
            tools=("create_calendar_event",),
            duration_ms=905,
        ),
        step(
            3,
            "schedule_event",
            kind="tool_results",
            cause_call=2,
            why="to answer create_calendar_event, which call 2 asked for",
            duration_ms=811,
        ),
        step(
            4,
            kind="tool_results",
            cause_call=1,
            why="to answer schedule_event, which call 1 asked for; a subagent's 2 calls made its result",
            usage=last,
            duration_ms=1203,
        ),
    ]
    turn = TurnReport(
        turn=1,
        user="帮我约明天下午 3 点和张三开产品评审会，1 小时",
        answer="已经帮你安排好了：明天（2025-06-11）下午 3 点和张三的产品评审会，时长 1 小时。",
        calls=4,
        tool_calls=2,
        agents=2,
        usage=usage,
        hit_rate=256 / 462,
        wall_ms=4801,
        steps=steps,
    )
    root = UsageSum(input=809, cached=256, output=106, reasoning=18, unknown={"cached": 1, "reasoning": 1})
    child = UsageSum(unknown_calls=2, unknown={"input": 2, "cached": 2, "output": 2, "reasoning": 2})
    return StatsReport(
        calls=4,
        tool_calls=2,
        agents=2,
        usage=usage,
        hit_rate=256 / 462,
        wall_ms=4801,
        turns=[turn],
        by_agent=[
            AgentReport(name="root", calls=2, tool_calls=1, usage=root, hit_rate=256 / 462),
            AgentReport(
                name="schedule_event",
                calls=2,
                tool_calls=1,
                usage=child,
                parent="root",
                started_by=1,
                started_tool="schedule_event",
                basis="data_flow",
            ),
        ],
        by_model=[GroupReport(name="deepseek-flash", calls=4, tool_calls=2, usage=usage, hit_rate=256 / 462)],
        findings=[Finding(kind="cache_break", call=4, text="206 of 462 input tokens were not served by the cache")],
        other_exchanges=1,
    )


def message(role: str, *blocks: Block) -> Message:
    return Message(role, blocks)


def model_call(
    number: int,
    sent: tuple[Message, ...],
    answer: tuple[Message, ...] = (),
    *,
    exchange: int | None = None,
    usage: Usage | None = None,
    finish: Finish | None = "stop",
    status: int = 200,
    error: CallError | None = None,
    complete: bool = True,
    model: str | None = "deepseek-flash",
    asked: str | None = "deepseek-v4-flash-vision-exp",
    tools: tuple[str, ...] = (),
    settings: JsonObject | None = None,
    at: int = 0,
    took: int | None = 1746,
    ended: Ended | None = Ended.COMPLETE,
    answered: bool = True,
    first_token_at: int | None = None,
) -> ModelCall:
    specs = tuple(ToolSpec(name, f"Does {name}.", {"type": "object"}, "function", {}) for name in tools)
    request = CallRequest(asked, sent, specs, settings or {}, segments=((0, "input"),))
    response = CallResponse(
        status,
        model,
        messages=answer,
        finish=finish,
        usage=usage,
        error=error,
        complete=complete,
        first_token_at=first_token_at,
    )
    return ModelCall(
        number,
        number if exchange is None else exchange,
        "openai.responses",
        request,
        response if answered else None,
        at,
        None if took is None else at + took,
        ended,
        url="https://api.deepseek.com/v1/responses",
    )


def subagents_run() -> Run:
    """The supervisor asks a calendar agent, which creates an event: four calls, as a packet dump shows them."""
    system = message("system", Text("你是个人助理主管。遇到日程类请求时，调用 schedule_event 交给日历助手。"))
    user = message("user", Text("帮我约明天下午 3 点和张三开产品评审会，1 小时"))
    arguments = '{"request": "帮我约明天下午 3 点和张三开产品评审会，时长 1 小时"}'
    delegate = message(
        "assistant",
        Reasoning("The user wants to schedule a meeting. I should call schedule_event.", opaque="713dda7a-0"),
        ToolCall("call_00_Fsa6", "schedule_event", arguments),
    )
    done = message("tool", ToolResult("call_00_Fsa6", None, "已为你创建「产品评审会」，时间：明天 15:00。"))
    child_system = message("system", Text("你是日历助手。收到日程请求后，必须调用 create_calendar_event 创建事件。"))
    child_user = message("user", Text("帮我约明天下午 3 点和张三开产品评审会，时长 1 小时"))
    create = message("assistant", ToolCall("call_01", "create_calendar_event", '{"title": "产品评审会"}'))
    created = message("tool", ToolResult("call_01", None, "OK: created '产品评审会' at 2025-06-11T15:00:00"))
    first = Usage(input=347, output=75, reasoning=18)
    last = Usage(input=462, cached=256, output=31)
    tools = ("schedule_event",)
    calls = (
        model_call(1, (system, user), (delegate,), usage=first, finish="tool_calls", tools=tools, at=12),
        model_call(2, (child_system, child_user), (create,), finish="tool_calls", model=None, at=1800, took=905),
        model_call(
            3,
            (child_system, child_user, create, created),
            (message("assistant", Text("已为你创建「产品评审会」，时间：明天 15:00。")),),
            at=2750,
            took=811,
        ),
        model_call(
            4,
            (system, user, delegate, done),
            (message("assistant", Text("已经帮你安排好了：明天下午 3 点和张三的产品评审会，时长 1 小时。")),),
            usage=last,
            tools=tools,
            at=3600,
            took=1203,
        ),
    )
    causes = (
        Cause("turn_start"),
        Cause("subagent", 1, ("schedule_event",), "data_flow"),
        Cause("tool_results", 2, ("create_calendar_event",)),
        Cause("tool_results", 1, ("schedule_event",)),
    )
    places = zip(calls, (0, 1, 1, 0), causes, (0, 0, 3, 3), strict=True)
    steps = tuple(Step(call, who, who, 1, cause, new_from) for call, who, cause, new_from in places)
    agents = (Agent(0, "root"), Agent(1, "schedule_event", 0, 1, "schedule_event", "data_flow"))
    turn = Turn(1, "帮我约明天下午 3 点和张三开产品评审会，1 小时", steps, "已经帮你安排好了。")
    return Run(steps, (turn,), agents, (Thread(0, 0, (1, 4)), Thread(1, 1, (2, 3))), ())


def header() -> Header:
    return Header(
        started=datetime(2026, 2, 28, 7, 5, 30, tzinfo=UTC),
        recorder="wiretape 0.1.0",
        note="个人助理主管 and its calendar agent",
        provenance="rebuilt from a packet dump; calls 2 and 3 are abridged there",
        redacted=["credential header"],
        bypassed=["registry.example.com"],
    )


def subagents_exchanges() -> list[Exchange]:
    """The four calls of `subagents_run`, and a request for the list of models."""
    calls = [step.call for step in subagents_run().steps]
    exchanges = [
        Exchange(call.exchange, call.at, Request("POST", call.url), Response(200), Ended.COMPLETE, call.ended_at)
        for call in calls
    ]
    url = "https://api.deepseek.com/v1/models?after=" + "deepseek-v4-flash-vision-exp" * 3
    models = Response(
        200, Headers([("content-type", "application/json")]), body=JsonBody({"data": [{"id": "deepseek-flash"}]})
    )
    request = Request("GET", url, Headers([("accept", "*/*"), ("authorization", "«secret 1»")]))
    return [*exchanges, Exchange(5, 4900, request, models, Ended.COMPLETE, 5000)]


def hard_report() -> StatsReport:
    """What breaks tables: long names, wide characters, big numbers, escapes, markup, failures, two turns."""
    big = UsageSum(input=1_234_567, cached=1_200_000, output=12_345, reasoning=9_876, unknown_calls=0)
    model = "claude-sonnet-4-5-20250929"
    first = [
        step(98, model=model, usage=big, tools=("mojitianqi-DayWeather", "gaodedetu-plan_bicycle"), first_token_ms=412),
        step(
            99,
            "general-purpose",
            kind="subagent",
            cause_call=98,
            model="豆包·1.6·极致速度·250828",
            why="first call of subagent general-purpose, started by call 98 (inferred from their order)",
            status=429,
            finish=None,
        ),
        step(100, "general-purpose", kind="retry", cause_call=99, why="retry of call 99 after 429", usage=big),
        step(
            101,
            "explorer",
            kind="subagent",
            cause_call=100,
            why="first call of subagent explorer, started by call 100",
            status=None,
            ended="upstream_unreachable",
            model=None,
            duration_ms=None,
        ),
        step(
            102,
            kind="tool_results",
            cause_call=98,
            why="answers [bold]\x1b[31mx[/]",
            ended="client_closed",
            model=model,
        ),
    ]
    usage = UsageSum(
        input=2_469_134,
        cached=2_400_000,
        output=24_690,
        reasoning=19_752,
        cache_write=4_096,
        unknown_calls=3,
        unknown={"input": 3, "cached": 3, "output": 3, "reasoning": 3, "cache_write": 3},
    )
    turns = [
        TurnReport(
            turn=1,
            user="我在成都南站，明天要去成都动物园。如果明天下雨，请帮我规划一下驾驶路线。\n如果明天不下雨，给我规划一下骑行路线。"
            * 3,
            answer=None,
            calls=5,
            tool_calls=2,
            agents=3,
            usage=usage,
            hit_rate=0.972,
            wall_ms=None,
            steps=first,
        ),
        TurnReport(
            turn=2,
            user="",
            answer="[/bold] 不客气",
            calls=1,
            tool_calls=0,
            agents=1,
            usage=big,
            hit_rate=0.999,
            wall_ms=61_000,
            steps=[step(103, model=model, usage=big, duration_ms=61_000, first_token_ms=1500)],
        ),
    ]
    names = (("root", None, None), ("general-purpose", "root", 98), ("explorer", "general-purpose", 100))
    return StatsReport(
        calls=6,
        tool_calls=2,
        agents=3,
        usage=usage,
        hit_rate=0.972,
        turns=turns,
        side_calls=[step(104, kind="side_call", why="side call (title), beside call 103", model="haiku")],
        by_agent=[
            AgentReport(
                name=name,
                parent=parent,
                started_by=call,
                started_tool="Agent" if call else None,
                basis="order" if call else None,
                calls=2,
                tool_calls=2,
                usage=usage,
                hit_rate=0.972,
            )
            for name, parent, call in names
        ],
        by_model=[
            GroupReport(name=name, calls=2, tool_calls=2, usage=usage) for name in (model, "豆包·1.6·极致速度·250828")
        ],
        findings=[
            Finding(
                kind="prefix_break",
                call=102,
                text="the cache broke at messages[0], character 4: a clock, '2026年02月28日 15时05分30秒' became "
                "'2026年02月28日 15时23分47秒'",
                estimate=True,
            ),
            Finding(kind="unanswered_tool_call", call=None, text="a tool call never got its result"),
        ],
        other_exchanges=3,
    )


SUPERVISOR = "你是个人助理主管。遇到日程类请求时，调用 schedule_event 交给日历助手，拿到结果后用一句自然语言回复用户。"
CALENDAR = (
    "你是日历助手。收到日程请求后，必须调用 create_calendar_event 创建事件，然后用一句话确认结果（包含标题与时间）。"
)
ASKED = "帮我约明天下午 3 点和张三开产品评审会，1 小时"
DELEGATED = "帮我约明天下午 3 点和张三开产品评审会，时长 1 小时"
CREATED = "OK: created '产品评审会' at 2025-06-11T15:00:00 for 60 min"
CONFIRMED = "已为你创建「产品评审会」，时间：明天（2025-06-11）15:00，时长 1 小时。"
ANSWERED = "已经帮你安排好了：明天（2025-06-11）下午 3 点和张三的产品评审会，时长 1 小时。"


def _said(role: str, text: str) -> JsonObject:
    return {"type": "message", "role": role, "content": text}


def _asks(name: str, arguments: str, call_id: str) -> JsonObject:
    return {"type": "function_call", "name": name, "arguments": arguments, "call_id": call_id}


def _result(call_id: str, output: str) -> JsonObject:
    return {"type": "function_call_output", "call_id": call_id, "output": output}


def _responses_exchange(
    number: int, at: int, sent: list[JsonObject], tool: str, output: list[JsonObject], usage: JsonObject | None
) -> Exchange:
    tools = [{"type": "function", "name": tool, "parameters": {"type": "object"}}]
    request = {"model": "deepseek-v4-flash-vision-exp", "input": sent, "tools": tools, "max_output_tokens": 2048}
    answer: JsonObject = {"id": f"r{number}", "model": "deepseek-flash", "status": "completed", "output": output}
    if usage is not None:
        answer["usage"] = usage
    kind = Headers([("content-type", "application/json")])
    return Exchange(
        number,
        at,
        Request("POST", "https://api.deepseek.com/v1/responses", kind, JsonBody(request), "1.1"),
        Response(200, kind, at + 600, JsonBody(answer)),
        Ended.COMPLETE,
        at + 700,
    )


def wire_exchanges() -> tuple[Exchange, ...]:
    """The same story as bytes on the wire: four model calls in the Responses format, and a list of models."""
    schedule = _asks("schedule_event", f'{{"request": "{DELEGATED}"}}', "call_00_Fsa6XTMl6dbQxpR4TFIb4432")
    create = _asks("create_calendar_event", '{"title": "产品评审会", "start_iso": "2025-06-11T15:00:00"}', "call_01")
    thought = {"type": "reasoning", "content": [{"type": "reasoning_text", "text": "The user wants a meeting."}]}
    answered = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": ANSWERED}]}
    confirmed = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": CONFIRMED}]}
    root = [_said("system", SUPERVISOR), _said("user", ASKED)]
    child = [_said("system", CALENDAR), _said("user", DELEGATED)]
    first = {"input_tokens": 347, "output_tokens": 75, "output_tokens_details": {"reasoning_tokens": 18}}
    last = {"input_tokens": 462, "output_tokens": 31, "input_tokens_details": {"cached_tokens": 256}}
    brought = [thought, schedule, _result("call_00_Fsa6XTMl6dbQxpR4TFIb4432", CONFIRMED)]
    models = Request("GET", "https://api.deepseek.com/v1/models", Headers([("accept", "*/*")]))
    listed = Response(200, Headers([("content-type", "application/json")]), 30, JsonBody({"data": []}))
    return (
        Exchange(1, 0, models, listed, Ended.COMPLETE, 40),
        _responses_exchange(2, 100, root, "schedule_event", [thought, schedule], first),
        _responses_exchange(3, 1000, child, "create_calendar_event", [create], None),
        _responses_exchange(
            4, 2000, [*child, create, _result("call_01", CREATED)], "create_calendar_event", [confirmed], None
        ),
        _responses_exchange(5, 3000, [*root, *brought], "schedule_event", [answered], last),
    )


def loop_exchanges(calls: int) -> list[Exchange]:
    """One user message that took many calls, each resending the whole history."""
    history = [_said("system", SUPERVISOR * 20), _said("user", ASKED)]
    exchanges = []
    for number in range(1, calls + 1):
        last = number == calls
        answer = (
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": ANSWERED}]}
            if last
            else _asks("look", f'{{"page": {number}}}', f"call_{number}")
        )
        usage = {"input_tokens": 100 * number, "output_tokens": 7, "input_tokens_details": {"cached_tokens": 64}}
        exchanges.append(_responses_exchange(number, 1000 * number, list(history), "look", [answer], usage))
        history += [answer, _result(f"call_{number}", f"page {number}: " + DELEGATED * 30)]
    return exchanges
