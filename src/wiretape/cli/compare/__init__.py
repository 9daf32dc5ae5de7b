"""Commands that compare or judge: diff, check, lint, verify."""
