"""HTTP/1.1 and WebSocket bytes, shared by servers and patches."""

__all__ = ["sending", "websocket_talk", "whole_requests", "ws_frames"]
