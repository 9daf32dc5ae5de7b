"""Commands that connect to other tools: import, export, doctor, schema."""
