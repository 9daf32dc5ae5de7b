"""Tapes: exchanges on disk."""

__all__ = [
    "atomic",
    "client_versions",
    "editing",
    "format",
    "notes",
    "output_redactor",
    "reading",
    "recording",
    "redaction",
    "storage",
    "writing",
]
