"""The wire format of Cohere's chat API."""
