"""The tape format: documents, body shapes, frames and patches."""

__all__ = [
    "bodies",
    "codings",
    "document_text",
    "documents",
    "frames",
    "incremental_parser",
    "json_layout",
    "json_offsets",
    "patch",
]
