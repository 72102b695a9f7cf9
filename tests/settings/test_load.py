"""A file, the environment and flags become one configuration, or one sentence that says what is wrong and where."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from proxy.access import hash_key
from proxy.config import BackendConfig, Config
from proxy.core.errors import ConfigError
from proxy.settings.load import DEFAULT_FILE, load, names_backend, settings_file
from tests.support.conversations import FIXTURES

TWO = """\
port = 9000

[[backend]]
name = "big"
url = ["http://10.0.0.1:8000", "http://10.0.0.2:8000/v1"]
models = ["qwen3-*"]
aliases = { "gpt-4o" = "qwen3-32b" }
key_env = "BIG_KEY"
dispatcher = "native"
prompt_style = "compact"

[[backend.model]]
match = ["qwen3-coder*", "qwen3-0.6b"]
dispatcher = "xml"
dialect = "hermes"
prompt_example = "on"

[[backend]]
name = "small one"
url = "http://127.0.0.1:8080"
default = true
forward_client_key = true
only_model = "smol"
starts_in_reasoning = false
"""


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def write(text: str) -> Path:
        file = tmp_path / "t.toml"
        file.write_text(text)
        return file

    return write


def loaded(file: Path | None = None, *, flags: dict[str, object] | None = None, **environ: str) -> Config:
    return load(flags or {}, environ, file)


def refusal(file: Path | None = None, *, flags: dict[str, object] | None = None, **environ: str) -> str:
    with pytest.raises(ConfigError) as caught:
        load(flags or {}, environ, file)
    return caught.value.message.replace(str(file), "FILE")


def test_every_worker_must_have_a_share(write: Any) -> None:
    file = write("workers = 4\n[[backend]]\nurl = 'http://127.0.0.1:9'\nmax_concurrent = 3")
    assert refusal(file).startswith("Of 3 requests at a time (`max_concurrent`), not each of 4 workers can have one.")
    assert loaded(file, TOOLGRAFT_WORKERS="3").workers == 3


def test_the_inspector_needs_one_worker(write: Any) -> None:
    file = write("workers = 2\ninspector = 'on'\n[[backend]]\nurl = 'http://127.0.0.1:9'")
    assert refusal(file).startswith("The inspector needs one worker")
    assert loaded(file, TOOLGRAFT_WORKERS="1").workers == 1


def test_a_file_with_everything(write: Any) -> None:
    config = loaded(write(TWO), BIG_KEY="sk-1")
    big, small = config.backends
    assert (config.port, config.host) == (9000, "127.0.0.1")
    assert (big.name, big.url, big.replicas) == ("big", "http://10.0.0.1:8000", ("http://10.0.0.2:8000/v1",))
    assert (big.models, big.aliases, big.default) == (("qwen3-*",), {"gpt-4o": "qwen3-32b"}, False)
    assert (big.key, big.dispatcher, big.prompt.style, big.model) == ("sk-1", "native", "compact", None)
    assert [pattern for pattern, _ in big.per_model] == ["qwen3-coder*", "qwen3-0.6b"]
    own = big.per_model[0][1]
    assert (own.dispatcher, own.dialect, own.prompt_example, own.prompt.style) == ("xml", "hermes", "on", "compact")
    assert (own.key, own.url, own.replicas) == (big.key, big.url, big.replicas)
    assert (small.default, small.forward_client_key, small.model) == (True, True, "smol")
    assert small.starts_in_reasoning is False


def test_an_empty_file_and_a_flag(write: Any) -> None:
    config = loaded(write(""), flags={"url": ("http://h",)})
    assert config == Config((BackendConfig("http://h"),))


def test_flags_before_the_environment_before_the_file(write: Any) -> None:
    file = write(
        'port = 1\nhost = "a"\nlog_format = "json"\n[backend]\nurl = "http://h"\ndialect = "hermes"\nreask = 3'
    )
    environ = {"TOOLGRAFT_PORT": "2", "TOOLGRAFT_HOST": "b", "TOOLGRAFT_BACKEND_DIALECT": "mistral"}
    config = loaded(file, flags={"port": 3, "dispatcher": "xml", "reask": None}, **environ)
    assert (config.port, config.host, config.log_format) == (3, "b", "json")
    (backend,) = config.backends
    assert (backend.url, backend.dispatcher, backend.dialect, backend.reask) == ("http://h", "xml", "mistral", 3)


def test_the_environment_alone_will_do() -> None:
    config = loaded(
        TOOLGRAFT_BACKEND_URL="http://a, http://b",
        TOOLGRAFT_BACKEND_KEY_ENV="K",
        TOOLGRAFT_BACKEND_ALIASES="x=y",
        TOOLGRAFT_BACKEND_SYSTEM_ROLE="no",
        TOOLGRAFT_PORT="tcp://10.0.0.1:8787",
        TOOLGRAFT_KEEP_ALIVE="",
        K="sk-1",
    )
    (backend,) = config.backends
    assert (backend.url, backend.replicas, backend.key) == ("http://a", ("http://b",), "sk-1")
    assert (backend.aliases, backend.system_role, config.port) == ({"x": "y"}, False, 8787)


@pytest.mark.parametrize(
    ("flags", "environ"), [({"url": ("http://new",)}, {}), ({}, {"TOOLGRAFT_BACKEND_URL": "http://new"})]
)
def test_a_backend_from_outside_takes_the_place_of_the_file_s_and_gets_none_of_their_keys(
    write: Any, flags: dict[str, object], environ: dict[str, str]
) -> None:
    config = loaded(write(TWO), flags=flags, **environ)
    assert config.backends == (BackendConfig("http://new"),)
    assert config.port == 9000


def test_one_of_several_backends_is_named_in_the_environment(write: Any) -> None:
    config = loaded(
        write(TWO), BIG_KEY="k", TOOLGRAFT_BACKEND_BIG_URL="http://c", TOOLGRAFT_BACKEND_SMALL_ONE_DIALECT="hermes"
    )
    big, small = config.backends
    assert (big.url, big.replicas, big.key) == ("http://c", (), "k")
    assert (big.dialect, small.dialect) == ("auto", "hermes")


@pytest.mark.parametrize(
    ("flags", "environ", "words"),
    [
        ({"dispatcher": "xml"}, {}, "--dispatcher does not say which of the 2 backends it is for."),
        ({}, {"TOOLGRAFT_BACKEND_REASK": "2"}, "set TOOLGRAFT_BACKEND_NAME_REASK with the backend's name"),
    ],
)
def test_what_is_meant_for_one_of_several_has_to_say_which(
    write: Any, flags: dict[str, object], environ: dict[str, str], words: str
) -> None:
    assert words in refusal(write(TWO), flags=flags, BIG_KEY="k", **environ)


def test_a_template_is_found_beside_the_file(write: Any) -> None:
    file = write('[[backend]]\nurl = "http://h"\nprompt_template = "own.jinja"')
    message = refusal(file)
    assert message.startswith("FILE, line 3: `prompt_template`: The protocol template ")
    assert f"{file.parent}/own.jinja cannot be read" in message
    (file.parent / "own.jinja").write_bytes((FIXTURES / "prompts" / "own.jinja").read_bytes())
    assert loaded(file).backends[0].prompt.template is not None


URL = 'url = "http://h"\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "There is no backend. Give the URL of a model server with --backend"),
        ("backend = 3", "FILE, line 1: a backend is a table. Begin it with the line [[backend]]."),
        ("backend = [3]", "FILE, line 1: a backend is a table."),
        ("\n[[backend]]\nmodels = ['a']", "FILE, line 2: this backend has no url. Write one below: url ="),
        ("[[backends]]\n", "FILE, line 1: there is no key `backends` here. Did you mean `backend`?"),
        ("[[backend]]\nurls = ['http://h']", "FILE, line 2: there is no key `urls` here. `url` takes a list as well."),
        (f"[[backend]]\n{URL}port = 3", "FILE, line 3: there is no key `port` here. It concerns the whole proxy"),
        ("url = 'http://h'", "FILE, line 1: there is no key `url` here. It belongs into a [[backend]]"),
        (f"[[backend]]\n{URL}dispatcher = 'nativ'", 'FILE, line 3: `dispatcher` must be "auto", "native" or "xml"'),
        (f"[[backend]]\n{URL}dialekt = 'x'", "FILE, line 3: there is no key `dialekt` here. Did you mean `dialect`?"),
        (f"[[backend]]\n{URL}dialect = 'klingon'", "FILE, line 3: `dialect`: "),
        (f"[[backend]]\n{URL}key = 'sk-secret'", "FILE, line 3: a key does not belong into a file."),
        (f"[[backend]]\n{URL}key_env = 'sk-secret'", "FILE, line 3: `key_env` must be the name of an environment var"),
        (f"[[backend]]\n{URL}key_env = 'NO_KEY'", "The environment variable NO_KEY (FILE, line 3: `key_env`) is not"),
        ("[[backend]]\nurl = 'h:8080'", "FILE, line 2: `url`: The backend URL 'h:8080' has no scheme."),
        ("[[backend]]\nurl = ['http://h', 'http://me:sk-secret@h']", "FILE, line 2: `url`: The backend URL holds a"),
        (f"[[backend]]\n{URL}model = 'x'", "FILE, line 3: `model` begins a table for single models, with the line [["),
        (f"[[backend]]\n{URL}[[backend.model]]\nreask = 1", "FILE, line 3: this table does not say for which models"),
        (f"[[backend]]\n{URL}[[backend.model]]\nmatch = 'a'\nkey_env = 'X'", "FILE, line 5: there is no key `key_env`"),
        (f"[[backend]]\n{URL}[[backend.model]]\nmatch = 'a'\nreask = 99", "FILE, line 5: `reask` must be a whole"),
        (f"[[backend]]\n{URL}default = true\n[[backend]]\n{URL}", "FILE, line 5: Two backends are called h."),
        (f"[[backend]]\nname='b'\n{URL}[[backend]]\nname='b'\n{URL}", "FILE, line 1: No model leads to the backend b."),
        (
            f"[[backend]]\n{URL}name='a'\ndefault = true\n[[backend]]\n{URL}name='b'",
            "FILE, line 5: No model leads to the backend b.",
        ),
        (
            f"[[backend]]\n{URL}name='a'\ndefault = true\n[[backend]]\n{URL}name='b'\ndefault = true",
            "FILE, line 8: The backends a and b are both marked as the default.",
        ),
        (
            f"[[backend]]\n{URL}name='a'\nmodels = 'x'\n[[backend]]\n{URL}name='b'\naliases = {{ x = 'y' }}",
            "FILE, line 8: The model 'x' leads to both a and b.",
        ),
        (
            f"[backend]\n{URL}only_model = 'x'\naliases = {{ a = 'b' }}",
            "FILE, line 4: A backend that is always asked for 'x' (`only_model`)",
        ),
        (f"[[backend]]\n{URL}aliases = {{ a = 3 }}", "FILE, line 3: `aliases` must be a table of texts"),
        ("port = 70000", "FILE, line 1: `port` must be a whole number from 0 to 65535, not 70000."),
        ("max_body = '1 GB'", "FILE, line 1: `max_body` must be a whole number of at least 1"),
        ("keep_alive = nan", "FILE, line 1: `keep_alive` must be a number of seconds"),
    ],
)
def test_what_cannot_be_used_is_told_with_its_line_and_the_mend(write: Any, text: str, message: str) -> None:
    told = refusal(write(text))
    assert told.startswith(message)
    assert "sk-secret" not in told
    assert "\n" not in told


def test_which_file_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert settings_file(None, {}) is None
    DEFAULT_FILE.write_text("")
    assert settings_file(None, {}) == DEFAULT_FILE
    assert settings_file(None, {"TOOLGRAFT_CONFIG": "/b"}) == Path("/b")
    assert settings_file(Path("/a"), {"TOOLGRAFT_CONFIG": "/b"}) == Path("/a")


def test_where_a_backend_may_come_from() -> None:
    assert not names_backend({}, None)
    assert names_backend({}, Path("x"))
    assert names_backend({"TOOLGRAFT_BACKEND_URL": "http://h"}, None)


def test_keys_of_clients_come_hashed_from_the_file_and_plain_from_the_environment(write: Any) -> None:
    ann, bob = hash_key(b"tg-ann"), hash_key(b"tg-bob")
    file = write(f'client_keys = {{ ann = "{ann}" }}\nclient_key_env = "KEYS"\n[backend]\nurl = "http://b"\n')
    assert loaded(file, KEYS="tg-bob").client_keys == {"ann": ann, "KEYS": bob}
    several = loaded(file, KEYS="tg-bob, tg-ann ,")
    assert several.client_keys == {"ann": ann, "KEYS-1": bob, "KEYS-2": ann}
    assert "tg-" not in repr(several)


@pytest.mark.parametrize("held", ["", " ", ",", " , "])
def test_a_variable_without_a_key_does_not_let_everybody_in(held: str) -> None:
    assert "KEYS" in refusal(TOOLGRAFT_BACKEND_URL="http://b", TOOLGRAFT_CLIENT_KEY_ENV="KEYS", KEYS=held)


def test_a_key_that_is_not_hashed_is_not_repeated(write: Any) -> None:
    told = refusal(write('[client_keys]\nann = "tg-secret"\n\n[[backend]]\nurl = "http://b"\n'))
    assert "hash-key" in told
    assert "tg-secret" not in told


def test_how_much_a_backend_gets_at_a_time(write: Any) -> None:
    (backend,) = loaded(write('[backend]\nurl = "http://b"\nmax_concurrent = 4\nmax_queue = 0\n')).backends
    assert (backend.max_concurrent, backend.max_queue) == (4, 0)


def test_a_password_in_a_url_leads_to_the_setting_beside_it(write: Any) -> None:
    url = "http://me:pass@h"
    assert 'name it with key_env = "VARIABLE".' in refusal(write(f"[[backend]]\nurl = '{url}'"))
    assert "name it with --backend-key-env." in refusal(flags={"url": (url,)})
    assert "name it with TOOLGRAFT_BACKEND_KEY_ENV." in refusal(TOOLGRAFT_BACKEND_URL=url)


def test_a_mistake_of_a_flag_names_no_line_of_the_file(write: Any) -> None:
    file = write(f"[[backend]]\n{URL}aliases = {{ a = 'b' }}")
    assert refusal(file, flags={"only_model": "x"}).startswith("FILE, line 3: A backend")
    flags: dict[str, object] = {"url": ("http://h",), "only_model": "x"}
    assert refusal(file, flags=flags, TOOLGRAFT_BACKEND_ALIASES='{ a = "b" }').startswith("A backend")
