"""The inspector's page in a real browser. Where there is no Chromium (``tests/support/browser.py``) it is not tried."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from proxy.access import hash_key
from tests.support.backend import Backend, error, text
from tests.support.browser import Browser, chromium
from tests.support.proxy import post, proxy_before

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        chromium() is None,
        reason="no Chromium here: apt-get install chromium-headless-shell, or set TOOLGRAFT_CHROMIUM",
    ),
]

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "The weather of the next days in a city.",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
                "required": ["city"],
            },
        },
    }
]
GOOD = '<tool_call>{"name": "get_weather", "arguments": {"city": "Oslo"}}</tool_call>'
MENDED = '<tool_call>{"name": "Get-Weather", "arguments": {"city": "Oslo", "days": "3",}}</tool_call>'
NO_CITY = '<tool_call>{"name": "get_weather", "arguments": {"days": 3}}</tool_call>'
EVIL = (
    "<script>document.title='owned'</script></script></pre></textarea><img src=x onerror=\"document.title='owned'\">"
    "<svg onload=\"document.title='owned'\"><a href=\"javascript:document.title='owned'\">here</a> {{7*7}} ${7*7} "
    "\x1b[31mred\x1b[0m \u202edesrever\u202c a\u200bb \x00 "
)
KEY = "sk-inspector-0123456789"


def ask(url: str, content: str = "The weather in Oslo?", **more: Any) -> None:
    messages = [{"role": "user", "content": content}]
    post(f"{url}/v1/chat/completions", json={"model": "m", "messages": messages, "tools": TOOLS, **more})


@asynccontextmanager
async def opened(url: str, **how: Any) -> AsyncIterator[Browser]:
    """The inspector in a browser. At the end nothing may have gone wrong in it, or been asked for from elsewhere."""
    async with Browser(**how) as page:
        await page.open(f"{url}/inspector")
        yield page
        assert page.errors == []
        assert [request for request in page.requests if not request.startswith((f"{url}/", "data:", "blob:"))] == []


async def choose(page: Browser, number: int) -> None:
    await page.until(f"document.querySelector('tr[data-number=\"{number}\"]')")
    await page.run(f"document.querySelector('tr[data-number=\"{number}\"]').click()")
    await page.until(f"document.querySelector('tr[aria-selected=true]')?.dataset.number === '{number}'")
    await page.until(f"document.querySelector('#detail[data-number=\"{number}\"] .columns')")


async def said(page: Browser, selector: str) -> str:
    told: str = await page.run(f"document.querySelector({json.dumps(selector)})?.textContent ?? ''")
    return told


async def test_exchanges_come_live_and_are_shown_in_three_columns() -> None:
    with Backend() as backend, proxy_before(backend, "xml") as url:
        async with opened(url) as page:
            await page.until("document.querySelector('#state').dataset.state === 'live'")
            backend.script(text(MENDED))
            await asyncio.to_thread(ask, url, stream=True)
            await choose(page, 1)
            assert "repaired" in await said(page, "tr[data-number='1']")
            columns = await page.run("[...document.querySelectorAll('.column')].map(each => each.textContent)")
            assert "The weather in Oslo?" in columns[0]
            assert "No description: city, days" in columns[0]
            assert await said(page, ".wrote mark.call.repaired") == "get_weather" + MENDED
            assert '"days": 3' in columns[2]
            for title in ("Syntax mended", "Tool name matched", "Value converted"):
                assert title in await said(page, ".happened")


async def test_hostile_texts_stay_texts() -> None:
    answer = EVIL + GOOD.replace("Oslo", "<b>Oslo</b>")
    tools = [{"type": "function", "function": {"name": "get_weather", "description": EVIL, "parameters": {"x": EVIL}}}]
    with Backend() as backend, proxy_before(backend, "xml") as url:
        backend.script(text(answer), text("fine"), error(500, EVIL), text(EVIL))
        ask(url, EVIL, tools=tools)
        ask(url, model=EVIL)
        ask(url)
        ask(url, stream=True)
        post(f"{url}/v1/chat/completions", content=EVIL.encode())
        async with opened(url) as page:
            for number in range(1, 6):
                await choose(page, number)
                await page.run("document.querySelectorAll('details').forEach(each => (each.open = true))")
                await page.run("document.querySelectorAll('.either button').forEach(each => each.click())")
                assert (
                    await page.run(
                        "document.querySelectorAll('main script, main img, main b, main textarea + a').length"
                    )
                    == 0
                )
            await choose(page, 1)
            wrote = await said(page, ".wrote")
            assert "<script>document.title='owned'</script>" in wrote
            assert "{{7*7}} ${7*7}" in wrote
            assert "\u202e" not in wrote
            assert "\x1b" not in wrote
            unseen = await page.run("[...document.querySelectorAll('.wrote .unseen')].map(each => each.textContent)")
            assert unseen == ["ESC", "ESC", "U+202E", "U+202C", "ZWSP", "NUL"]
            await page.run("location.hash = '#/charts'")
            await page.until("document.querySelector('#charts svg')")
            assert await page.run("document.title") == "Toolgraft inspector"


async def test_the_policy_holds_even_if_the_page_were_wrong() -> None:
    with Backend() as backend, proxy_before(backend, "xml") as url:
        async with Browser() as page:
            await page.open(f"{url}/inspector")
            await page.run("document.body.innerHTML = `<img src=x onerror=\"document.title='owned'\">`")
            await page.run(
                "const each = document.createElement('script'); each.textContent = `document.title = 'owned'`;"
                "document.body.append(each)"
            )
            refused = "fetch('http://127.0.0.1:9/').then(() => 'asked', (error) => String(error))"
            assert "Failed to fetch" in await page.run(refused)
            assert await page.run("document.title") == "Toolgraft inspector"
            assert any("Content Security Policy" in each for each in page.errors)


async def test_keys_alone_are_enough() -> None:
    with Backend() as backend, proxy_before(backend, "xml") as url:
        for _ in range(3):
            backend.script(text(GOOD))
            ask(url)
        async with opened(url) as page:
            await page.until("document.querySelectorAll('#rows tr').length === 3")
            chosen = "document.querySelector('tr[aria-selected=true]')?.dataset.number"
            for key, number in (
                ("ArrowDown", 3),
                ("ArrowDown", 2),
                ("j", 1),
                ("ArrowDown", 1),
                ("ArrowUp", 2),
                ("k", 3),
            ):
                await page.press(key)
                await page.until(f"{chosen} === '{number}'")
            assert await page.run("document.activeElement.tagName") == "TR"
            await page.press("/")
            assert await page.run("document.activeElement.id") == "filter"
            await page.run("document.activeElement.value = 'nothing like it'")
            await page.run("document.activeElement.dispatchEvent(new Event('input'))")
            assert await said(page, "#count") == "0 of 3 exchanges"
            await page.press("Escape")
            assert await said(page, "#count") == "3 exchanges"


async def test_a_key_is_asked_for_and_shows_the_exchanges() -> None:
    config = {"client_keys": {"ann": hash_key(KEY.encode())}}
    with Backend() as backend, proxy_before(backend, "xml", config=config) as url:
        backend.script(text(GOOD))
        messages = [{"role": "user", "content": "hi"}]
        post(
            f"{url}/v1/chat/completions",
            json={"messages": messages, "tools": TOOLS},
            headers={"authorization": f"Bearer {KEY}"},
        )
        async with Browser() as page:
            await page.open(f"{url}/inspector")
            await page.until("document.querySelector('#key').open")
            for given in ("wrong", KEY):
                await page.until("document.querySelector('#key').open")
                await page.run(f"document.querySelector('#key-input').value = '{given}'")
                await page.run("document.querySelector('#key button').click()")
            await choose(page, 1)
            assert KEY not in await page.run("document.documentElement.outerHTML")


async def test_charts_are_drawn() -> None:
    with Backend() as backend, proxy_before(backend, "xml", reask=0) as url:
        for wrote in (GOOD, MENDED, NO_CITY, "Hello."):
            backend.script(text(wrote))
            ask(url, stream=True)
        async with opened(url, dark=True) as page:
            await page.until("document.querySelectorAll('#rows tr').length === 4")
            await page.run("document.querySelector('nav a[data-view=charts]').click()")
            await page.until("document.querySelectorAll('#charts svg').length >= 2")
            assert await page.run("document.querySelectorAll('#charts figure:first-of-type circle').length") == 4
            kinds = "[...document.querySelectorAll('rect.bar')].map(each => each.getAttribute('class')).sort()"
            assert await page.run(kinds) == ["bar refused", "bar repaired", "bar right"]
            await page.run("document.querySelector('circle').dispatchEvent(new Event('click', {bubbles: true}))")
            await page.until("document.querySelector('#detail .columns')")


async def test_the_dots_of_charts_are_reached_by_keys() -> None:
    with Backend() as backend, proxy_before(backend, "xml") as url:
        for _ in range(3):
            backend.script(text(GOOD))
            ask(url, stream=True)
        async with opened(url) as page:
            await page.until("document.querySelectorAll('#rows tr').length === 3")
            await page.run("location.hash = '#/charts'")
            await page.until("document.querySelector('#charts circle')")
            stops = "document.querySelectorAll('#charts figure:first-of-type [tabindex=\"0\"]')"
            assert await page.run(f"{stops}.length") == 1
            await page.run(f"{stops}[0].focus()")
            focused = "document.activeElement.dataset.dot"
            for key, number in (("ArrowLeft", 2), ("Home", 1), ("ArrowLeft", 1), ("ArrowRight", 2)):
                await page.press(key)
                assert await page.run(focused) == f"Time to first token {number}"
            assert await page.run(f"{stops}.length") == 1
            assert "milliseconds" in await page.run("document.activeElement.getAttribute('aria-label')")
            backend.script(text(GOOD))
            await asyncio.to_thread(ask, url, stream=True)  # it is drawn anew
            await page.until("document.querySelectorAll('#charts figure:first-of-type circle').length === 4")
            assert await page.run(focused) == "Time to first token 2"
            await page.press("Enter")
            await page.until("document.querySelector('#detail[data-number=\"2\"]')")


async def test_what_is_known_of_the_models() -> None:
    with Backend() as backend, proxy_before(backend, "xml", model=EVIL) as url:
        async with opened(url) as page:
            await page.run("location.hash = '#/models'")
            await page.until("document.querySelector('#models tbody tr')")
            row = await said(page, "#models tbody tr")
            assert "<script>document.title='owned'</script>" in row
            assert "xmlconfigured" in row
            assert await page.run("document.title") == "Toolgraft inspector"


async def test_a_text_is_tried() -> None:
    with Backend() as backend, proxy_before(backend, "xml") as url:
        async with opened(url) as page:
            await page.run("location.hash = '#/try'")
            await page.run(f"document.querySelector('#trial-text').value = {json.dumps(EVIL + MENDED)}")
            await page.run("document.querySelector('#trial button').click()")
            await page.until("document.querySelector('#trial-result mark.call.repaired')")
            assert "Syntax mended" in await said(page, "#trial-result")
            await page.run("document.querySelector('#trial-tools').value = '{oops'")
            await page.run("document.querySelector('#trial button').click()")
            await page.until("document.querySelector('#trial-result [role=alert]')")
            assert "The tools are not JSON" in await said(page, "#trial-result")
            assert await page.run("document.title") == "Toolgraft inspector"


async def test_what_is_taken_away() -> None:
    with Backend() as backend, proxy_before(backend, "xml") as url:
        backend.script(text(GOOD))
        ask(url)
        async with opened(url) as page:
            await page.run("navigator.clipboard.writeText = async (text) => (window.copied = text)")
            await page.run(
                "const make = URL.createObjectURL.bind(URL);"
                "URL.createObjectURL = (blob) => ((window.saved = blob.text()), make(blob))"
            )
            await choose(page, 1)
            await page.run("document.querySelector('.column .buttons button').click()")
            await page.until("window.copied")
            assert (await page.run("window.copied")).startswith(f"curl -sS {url}/v1/chat/completions ")
            button = "[...document.querySelectorAll('button')].find(each => each.textContent === 'download as fixture')"
            await page.run(f"{button}.click()")
            await page.until("window.saved")
            assert json.loads(await page.run("window.saved"))["text"] == GOOD


@pytest.mark.parametrize("width", [1280, 800])
async def test_it_fits(width: int) -> None:
    long = "a_name_without_any_end_" * 40
    with Backend() as backend, proxy_before(backend, "xml") as url:
        backend.script(text(f"{long} {MENDED}"))
        ask(url, long, model=long)
        async with opened(url, width=width) as page:
            await choose(page, 1)
            assert await page.run("document.documentElement.scrollWidth") <= width
            beside = (
                "new Set([...document.querySelectorAll('.column')].map(each => each.getBoundingClientRect().left)).size"
            )
            assert await page.run(beside) == (3 if width == 1280 else 1)
