"""HTTP/1.1 and WebSocket bytes, shared by servers and patches."""

__all__ = ["messages", "send_playback", "server", "websocket_frames", "websocket_replay"]
