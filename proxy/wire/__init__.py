"""Codecs: bytes and JSON of a protocol on one side, core values on the other. No I/O."""
