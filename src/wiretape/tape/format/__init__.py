"""The tape format: documents, body shapes, frames and patches."""
