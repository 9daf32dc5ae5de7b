"""The customer-service agent's clock."""

from __future__ import annotations

import json
from datetime import datetime

from wiretape.demo.customer_service import BICYCLE, DRIVING, WEATHER, clock, spell, use_tool


def test_a_moment_is_spelled_in_full() -> None:
    assert spell(datetime(2026, 2, 28, 15, 5, 30)) == "2026年02月28日 15时05分30秒 星期六"


def test_frozen_times_come_first_then_the_real_one() -> None:
    times = clock(["2026-02-28T15:05:30"])
    assert next(times) == datetime(2026, 2, 28, 15, 5, 30)
    assert abs((datetime.now() - next(times)).total_seconds()) < 60


def test_the_forecast_is_for_the_requested_day() -> None:
    assert use_tool(WEATHER, {"city": "成都市", "start_time": "2026年03月01日", "end_time": "2026年03月01日"}) == (
        '{"data":[{"wind_dir_day":"东北风","wind_level_day":"2","temp_high":18,"condition":"多云",'
        '"wind_dir_night":"东北风","predict_date":"2026-03-01","weather_day":"多云","wind_level_night":"2",'
        '"temp_low":10,"humidity":76}]}'
    )


def test_a_city_without_forecast_has_no_data() -> None:
    assert use_tool(WEATHER, {"city": "上海市", "start_time": "2026年03月01日"}) == '{"data":[]}'


def test_the_bicycle_route_adds_up() -> None:
    found = json.loads(use_tool(BICYCLE, {"origin": "成都南站", "destination": "成都动物园"}))["data"]
    assert found["distance"] == sum(step["distance"] for step in found["steps"]) == 14937
    assert found["duration_minutes"] == 84.6


def test_details_of_a_route_can_be_left_out() -> None:
    arguments = {"origin": "成都南站", "destination": "成都动物园", "disable_paths": True}
    assert json.loads(use_tool(BICYCLE, arguments))["data"]["steps"] == []


def test_an_unknown_route_has_no_steps() -> None:
    assert json.loads(use_tool(DRIVING, {"origin": "A", "destination": "B"}))["data"]["distance"] == 0
