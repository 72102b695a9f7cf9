"""A protocol template as a file."""

from __future__ import annotations

from pathlib import Path

from proxy.core.errors import ConfigError
from proxy.core.template import ProtocolTemplate


def read_template(path: Path) -> ProtocolTemplate:
    """The template in the file at ``path``, checked. Raises ``ConfigError`` when it cannot be read or used."""
    try:
        source = path.read_text("utf-8")
    except UnicodeDecodeError:
        raise ConfigError(f"The protocol template {path} is not text in UTF-8.") from None
    except OSError as error:
        raise ConfigError(f"The protocol template {path} cannot be read: {error.strerror or error}.") from None
    return ProtocolTemplate(source, str(path))
