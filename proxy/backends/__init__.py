"""What is known about the configured backends, and how each is made to do its best."""
