"""The wire formats of Amazon Bedrock: Converse, Invoke and the AWS event stream."""

__all__ = ["converse", "converse_stream", "event_stream", "invoke", "usage"]
