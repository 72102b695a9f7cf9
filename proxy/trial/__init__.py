"""A trial of a backend: the same prompts asked in several ways, through the proxy as it serves, and judged."""
