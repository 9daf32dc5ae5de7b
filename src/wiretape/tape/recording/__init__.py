"""The Recorder: writes exchanges to a tape while they happen."""
