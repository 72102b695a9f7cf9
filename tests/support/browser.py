"""A real browser: Chromium without a window, told what to do over its own protocol.

async with Browser() as page:
    await page.open("http://127.0.0.1:8787/inspector")
    await page.until("document.querySelector('tr')")
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
import re
import shutil
import signal
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import aiohttp

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "chrome")
"""Programs that will do. On Debian: ``apt-get install chromium-headless-shell``."""

_ADDRESS = re.compile(r"DevTools listening on (ws://\S+)")
_WITHIN = 60.0
"""Seconds for whatever the browser is asked to do."""


def chromium() -> str | None:
    """Where Chromium is: ``$TOOLGRAFT_CHROMIUM``, or what the path has."""
    return os.environ.get("TOOLGRAFT_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """One page. ``errors`` are what went wrong in it: exceptions, and what its policy has kept from running."""

    def __init__(self, width: int = 1280, height: int = 900, *, dark: bool = False) -> None:
        self.errors: list[str] = []
        self.requests: list[str] = []
        self._size = width, height
        self._dark = dark
        self._numbers = 0
        self._waiting: dict[int, asyncio.Future[Any]] = {}

    async def __aenter__(self) -> Self:
        program = chromium()
        assert program is not None
        self._folder = tempfile.mkdtemp(prefix="toolgraft-browser-")
        self._process = await asyncio.create_subprocess_exec(
            program,
            *("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-port=0"),
            *("--no-first-run", "--no-proxy-server", "--mute-audio", f"--user-data-dir={self._folder}", "about:blank"),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,  # it has children, and they have its pipes
        )
        try:
            await self._connect()
        except BaseException:
            await self.__aexit__(None, None, None)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for each in ("_reader", "_drain"):
            task = getattr(self, each, None)
            if task is not None:
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
        if hasattr(self, "_session"):
            await self._session.close()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        await self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    async def _connect(self) -> None:
        assert self._process.stderr is not None
        async with asyncio.timeout(_WITHIN):
            while not (found := _ADDRESS.search((await self._process.stderr.readline()).decode("utf-8", "replace"))):
                assert self._process.returncode is None
        self._drain = asyncio.create_task(self._process.stderr.read())
        self._session = aiohttp.ClientSession()
        self._socket = await self._session.ws_connect(found[1], max_msg_size=0)
        self._reader = asyncio.create_task(self._read())
        self._target = ""
        target = (await self.call("Target.createTarget", url="about:blank"))["targetId"]
        self._target = (await self.call("Target.attachToTarget", targetId=target, flatten=True))["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            await self.call(f"{domain}.enable")
        width, height = self._size
        await self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
        )
        scheme = "dark" if self._dark else "light"
        await self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    async def call(self, method: str, **parameters: Any) -> Any:
        """What the browser answers."""
        self._numbers += 1
        number = self._numbers
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        session = {"sessionId": self._target} if self._target else {}
        await self._socket.send_json({"id": number, "method": method, "params": parameters, **session})
        async with asyncio.timeout(_WITHIN):
            return await answer

    async def open(self, url: str) -> None:
        """Go to ``url``."""
        await self.call("Page.navigate", url=url)
        await self.until("document.readyState === 'complete'")

    async def run(self, script: str) -> Any:
        """The value of an expression, awaited if it has to be."""
        told = await self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in told:
            raise AssertionError(told["exceptionDetails"].get("exception", {}).get("description") or told)
        return told["result"].get("value")

    async def until(self, script: str) -> None:
        """Wait until an expression is true."""
        async with asyncio.timeout(_WITHIN):
            while not await self.run(f"!!({script})"):
                await asyncio.sleep(0.05)

    async def press(self, key: str) -> None:
        """Press a key."""
        text = {"text": key} if len(key) == 1 else {"text": "\r"} if key == "Enter" else {}
        await self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
        await self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    async def picture(self, file: Path) -> None:
        """Write down what is to be seen, the whole length of the page."""
        height = await self.run("document.documentElement.scrollHeight")
        clip = {"x": 0, "y": 0, "width": self._size[0], "height": min(height, 6000), "scale": 1}
        told = await self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
        file.write_bytes(base64.b64decode(told["data"]))

    async def _read(self) -> None:
        async for message in self._socket:
            told = json.loads(message.data)
            if "id" in told:
                waiting = self._waiting.pop(told["id"], None)
                if waiting is not None and not waiting.done():
                    if "error" in told:
                        waiting.set_exception(AssertionError(told["error"]["message"]))
                    else:
                        waiting.set_result(told["result"])
            elif told["method"] == "Runtime.exceptionThrown":
                details = told["params"]["exceptionDetails"]
                self.errors.append(details.get("exception", {}).get("description") or details["text"])
            elif told["method"] == "Log.entryAdded" and told["params"]["entry"]["level"] == "error":
                self.errors.append(told["params"]["entry"]["text"])
            elif told["method"] == "Network.requestWillBeSent":
                self.requests.append(told["params"]["request"]["url"])
