"""The customer-service agent's tools are functions of their arguments."""

from __future__ import annotations

import json

from wiretape.demo.places import BICYCLE, DRIVING, WEATHER, use_tool


def test_the_forecast_is_for_the_day_that_was_asked_for() -> None:
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
