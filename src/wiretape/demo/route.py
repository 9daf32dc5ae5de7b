"""The customer-service agent, asked for a route that depends on the weather: two tools, one after the other."""

from __future__ import annotations

from wiretape.demo.customer_service import main

QUESTION = (
    "我在成都南站，明天要去成都动物园。如果明天下雨，请帮我规划一下驾驶路线。如果明天不下雨，给我规划一下骑行路线。"
)

if __name__ == "__main__":
    main(questions=[QUESTION])
