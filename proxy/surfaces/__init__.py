"""What clients speak: each surface ties a client's request to the codec that answers it."""
