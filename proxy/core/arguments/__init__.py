"""The arguments of a call: strict JSON (``jsontext``), else repair, then coercion and validation (``schema``)."""
