"""Toolgraft: native tool calling for any model server."""
