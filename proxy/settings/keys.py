"""Every setting there is, as tables: the file, the environment, the flags and the documentation are made of them."""

from __future__ import annotations

from dataclasses import dataclass

from proxy.config import CONSTRAINS, DEFAULT_HOST, DEFAULT_PORT, DISPATCHERS, INSPECTORS, LOG_FORMATS, PROMPT_EXAMPLES
from proxy.core.prompt import STYLES
from proxy.settings import kinds
from proxy.settings.kinds import Kind


@dataclass(frozen=True, slots=True)
class Key:
    """One setting.

    ``name`` is its name in the file, ``shown`` its default as it would stand there ("" if there is none), ``example``
    what to show where there is none. ``help`` is a sentence or two. ``flag`` is its name on the command line; one that
    ``sets`` something takes no value, and ``flag_help`` is for one that says the opposite.
    """

    name: str
    kind: Kind
    help: str
    shown: str = ""
    example: str = ""
    flag: str | None = None
    sets: bool | None = None
    flag_help: str | None = None
    metavar: str | None = None

    def variable(self, prefix: str) -> str:
        """The name of its environment variable; ``prefix`` is that of its table."""
        return prefix + self.name.upper()


SERVER_PREFIX = "TOOLGRAFT_"
BACKEND_PREFIX = "TOOLGRAFT_BACKEND_"

SERVER = (
    Key("host", kinds.text(), "The address to listen on.", f'"{DEFAULT_HOST}"', flag="--host"),
    Key(
        "port",
        kinds.whole(0, 65535),
        "The port to listen on; 0 picks a free one.",
        str(DEFAULT_PORT),
        flag="--port",
        metavar="N",
    ),
    Key(
        "workers",
        kinds.whole(1, 256),
        "Processes that serve, each of which holds to its share of the limits.",
        "1",
        flag="--workers",
        metavar="N",
    ),
    Key(
        "client_keys",
        kinds.hashes(),
        "The API keys that are let in, hashed, by the names of their owners. None: everybody is.",
        example='{ ann = "sha256:2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b" }',
    ),
    Key(
        "client_key_env",
        kinds.variable(),
        "The environment variable that holds API keys that are let in, with commas between.",
        example='"PROXY_KEY"',
        flag="--client-key-env",
        metavar="VAR",
    ),
    Key(
        "may_reload",
        kinds.texts(),
        "The owners of keys who may have the settings read again by POST /-/reload. SIGHUP does it in any case.",
        example='["ann"]',
    ),
    Key(
        "cors_origins",
        kinds.origins(),
        "The web pages whose scripts may use the proxy.",
        example='["https://chat.example.com", "app://obsidian.md"]',
        flag="--cors-origins",
        metavar="ORIGINS",
    ),
    Key(
        "allowed_hosts",
        kinds.texts(),
        "Names by which browsers may ask for a proxy without keys: those of a gateway before it.",
        example='["llm.example.com"]',
    ),
    Key(
        "rate_limit",
        kinds.whole(1),
        "Requests a minute that each key may make, or each address where no key is wanted.",
        example="600",
        flag="--rate-limit",
        metavar="N",
    ),
    Key("max_body", kinds.whole(1), "Bytes that a request body may have; images travel inside of it.", "67108864"),
    Key("max_messages", kinds.whole(1), "Messages that one request may have.", "100000"),
    Key("max_tools", kinds.whole(1), "Tools that one request may have.", "2000"),
    Key(
        "keep_alive",
        kinds.seconds(),
        "Seconds of silence after which a stream gets a comment, so that nobody on the way gives up.",
        "15.0",
    ),
    Key("body_timeout", kinds.seconds(), "Seconds for which a client may pause while it sends a request.", "60.0"),
    Key("connect_timeout", kinds.seconds(), "Seconds for connecting to a backend.", "10.0"),
    Key(
        "first_byte_timeout",
        kinds.seconds(),
        "Seconds until the first byte of a backend's reply. By default there is no limit: long prompts take long.",
        example="600.0",
    ),
    Key(
        "idle_timeout",
        kinds.seconds(),
        "Seconds for which a backend may pause in the middle of a reply. By default there is no limit.",
        example="120.0",
    ),
    Key(
        "total_timeout",
        kinds.seconds(),
        "Seconds for the whole of a backend's reply. By default there is no limit.",
        example="3600.0",
    ),
    Key("shutdown_timeout", kinds.whole(0), "Seconds that open streams may take to end after a signal.", "30"),
    Key(
        "inspector",
        kinds.choice(INSPECTORS),
        "Show the last exchanges at /inspector; auto: if only this machine can see it, or keys are wanted; one worker.",
        '"auto"',
        flag="--inspector",
    ),
    Key("inspector_keep", kinds.whole(1), "Exchanges that the inspector keeps, in memory.", "500"),
    Key("inspector_bytes", kinds.whole(0), "Bytes of what was said in them that it keeps.", "33554432"),
    Key(
        "inspector_sees_all",
        kinds.texts(),
        "The owners of keys who see everybody's exchanges there; others see their own.",
        example='["ann"]',
    ),
    Key(
        "log_format",
        kinds.choice(LOG_FORMATS),
        "How to write the one log line a request.",
        '"human"',
        flag="--log-format",
    ),
    Key(
        "log_content",
        kinds.switch(),
        "Log what clients send and what they get, too. Images are left out.",
        "false",
        flag="--log-content",
        sets=True,
    ),
    Key(
        "traces",
        kinds.switch(),
        "Tell requests to OpenTelemetry, which is set up by its own variables (OTEL_…).",
        "false",
        flag="--traces",
        sets=True,
    ),
)
"""What concerns the proxy as a whole: the keys at the top of the file."""

TALK = (
    Key(
        "dispatcher",
        kinds.choice(DISPATCHERS),
        "native: the backend calls tools itself. xml: as text, read by the proxy. auto: find out.",
        '"auto"',
        flag="--dispatcher",
    ),
    Key(
        "dialect",
        kinds.text(),
        "Read one model family's way of writing calls only.",
        '"auto"',
        flag="--dialect",
        metavar="NAME",
    ),
    Key(
        "system_role",
        kinds.switch(),
        "Whether the chat template knows a system message; if not, its text goes into the first user message.",
        "true",
        flag="--no-system-role",
        sets=False,
        flag_help="The chat template knows no system message: put its text into the first user message.",
    ),
    Key(
        "starts_in_reasoning",
        kinds.switch_or_auto(),
        "Whether the prompt ends in an opening think mark, so that replies begin in the reasoning.",
        '"auto"',
        flag="--starts-in-reasoning",
    ),
    Key(
        "prompt_style",
        kinds.choice(STYLES),
        "Tell the model of tools in JSON, or in shorter signatures in the manner of TypeScript.",
        '"full"',
        flag="--prompt-style",
    ),
    Key(
        "prompt_template",
        kinds.path(),
        "A file that replaces the whole text about tools, example and style included.",
        example='"tools.jinja"',
        flag="--prompt-template",
        metavar="FILE",
    ),
    Key(
        "prompt_example",
        kinds.choice(PROMPT_EXAMPLES),
        "Show the model a worked example of a call; auto: where `toolgraft check` measured that it helps.",
        '"auto"',
        flag="--prompt-example",
    ),
    Key(
        "constrain",
        kinds.choice(CONSTRAINS),
        "When the backend is kept, by its own means, from writing invalid calls: never, when one must come, always.",
        '"required"',
        flag="--constrain",
    ),
    Key(
        "reask",
        kinds.whole(0, 5),
        "How often the model is told what was wrong with its calls and asked again.",
        "1",
        flag="--reask",
        metavar="N",
    ),
)
"""How a model is talked to: keys of a ``[[backend]]``, and of a ``[[backend.model]]`` for single models of it."""

BACKEND = (
    Key("name", kinds.text(), "What the backend is called in logs and lists.", example='"big"'),
    Key(
        "url",
        kinds.texts(),
        "The model server, with or without /v1. Several (a list) are servers that serve the same models.",
        example='"http://127.0.0.1:8080"',
        flag="--backend",
        metavar="URL",
    ),
    Key(
        "models",
        kinds.texts(),
        "The models that go to this backend: names, or patterns with `*`, `?` and `[abc]`.",
        example='["qwen3-*", "gpt-oss"]',
    ),
    Key(
        "aliases",
        kinds.names(),
        "Further names for models: what is asked for, and what is sent.",
        example='{ "gpt-4o" = "qwen3-32b" }',
    ),
    Key("default", kinds.switch(), "Models that no backend names go to this one.", "false"),
    Key(
        "only_model",
        kinds.text(),
        "The model to ask the backend for, whatever the client asks for.",
        example='"qwen3-32b"',
        flag="--model",
        metavar="NAME",
    ),
    Key(
        "key_env",
        kinds.variable(),
        "The environment variable that holds the backend's API key.",
        example='"BIG_KEY"',
        flag="--backend-key-env",
        metavar="VAR",
    ),
    Key(
        "forward_client_key",
        kinds.switch(),
        "Send the client's own API key on to the backend.",
        "false",
        flag="--forward-client-key",
        sets=True,
    ),
    Key(
        "max_concurrent",
        kinds.whole(1),
        "Requests that the backend works on at a time, on all its servers together. By default there is no limit.",
        example="8",
        flag="--max-concurrent",
        metavar="N",
    ),
    Key("max_queue", kinds.whole(0), "Requests that wait for their turn; further ones are refused.", "100"),
    *TALK,
)
"""The keys of a ``[[backend]]``."""

MODEL = (
    Key(
        "match",
        kinds.texts(),
        "The models, by the name that the backend is sent, that this holds for: names or patterns.",
        example='"qwen3-coder*"',
    ),
    *TALK,
)
"""The keys of a ``[[backend.model]]``; what it leaves out is as in its ``[[backend]]``."""
