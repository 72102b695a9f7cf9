"""The HTTP client side."""
