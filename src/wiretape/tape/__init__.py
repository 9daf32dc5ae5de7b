"""Tapes: exchanges on disk. Records, body shapes, patches, journal, redaction, and the sans-IO recorder."""
