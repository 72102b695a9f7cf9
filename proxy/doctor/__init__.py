"""The doctor behind ``toolgraft check``: what a backend is, how well it calls tools in each way, and which to use."""
