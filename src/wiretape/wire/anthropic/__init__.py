"""The wire format of Anthropic's Messages API."""
