"""The wire formats of Amazon Bedrock: Converse, Invoke and the AWS event stream."""

__all__ = ["converse", "invoke", "usage"]
