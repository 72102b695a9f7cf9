"""How hard the properties are tried in this run."""

from __future__ import annotations

from hypothesis import settings

EXAMPLES = settings.get_profile(settings.get_current_profile_name()).max_examples
"""Examples of a property."""
