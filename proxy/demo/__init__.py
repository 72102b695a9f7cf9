"""The demo: tool loops played on the embedded model, with both sides of the proxy in view."""
