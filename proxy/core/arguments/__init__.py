"""The arguments of a call: strict JSON, repair, coercion, validation."""
