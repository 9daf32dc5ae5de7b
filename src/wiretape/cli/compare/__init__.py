"""Commands that compare or judge: diff, check, lint, verify."""

__all__: list[str] = []
