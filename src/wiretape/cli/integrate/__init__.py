"""Commands that connect to other tools: import, export, doctor, schema."""

__all__: list[str] = []
