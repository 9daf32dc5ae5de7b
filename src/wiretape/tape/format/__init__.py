"""The tape format: documents, body shapes, frames and patches."""

__all__ = [
    "bodies",
    "codings",
    "document_text",
    "documents",
    "frames",
    "json_layout",
    "json_offsets",
    "patch",
    "sharing",
]
