"""HTTP/1.1 and WebSocket bytes, shared by servers and patches."""
