"""One headless Chromium with one tab, driven over its debugging pipe: nothing but the browser itself is needed."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

BROWSER = os.environ.get("SYMCHECK_BROWSER") or shutil.which("chromium")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--remote-debugging-pipe",
)  # fmt: skip
NOISE = ("Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Page.javascriptDialogOpening")


def _high(descriptor: int) -> int:
    """The same pipe end under a number that 3 and 4 cannot collide with."""
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 20)
    os.close(descriptor)
    return moved


class Browser:
    """Commands of the Chrome DevTools Protocol over file descriptors 3 and 4."""

    def __init__(self, profile: Path) -> None:
        commands_in, self._commands = (_high(end) for end in os.pipe())
        self._answers, answers_out = (_high(end) for end in os.pipe())
        script = f'exec "$0" "$@" 3<&{commands_in} 4>&{answers_out}'
        self._process = subprocess.Popen(
            ["/bin/bash", "-c", script, str(BROWSER), *FLAGS, f"--user-data-dir={profile}", "about:blank"],
            pass_fds=(commands_in, answers_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(commands_in)
        os.close(answers_out)
        self._buffer = b""
        self._number = 0
        self.events: list[dict[str, Any]] = []
        self._session = ""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def close(self) -> None:
        self._session = ""
        self.call("Browser.close")
        self._process.wait(timeout=20)
        os.close(self._commands)
        os.close(self._answers)

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result
            self.events.append(answer)

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            part = os.read(self._answers, 1 << 16)
            assert part, "the browser closed its pipe"
            self._buffer += part
        line, self._buffer = self._buffer.split(b"\0", 1)
        message: dict[str, Any] = json.loads(line)
        return message

    def open(self, path: Path) -> float:
        """Load a file; returns the milliseconds until its load event, as the page itself measured them."""
        self.events.clear()
        self.call("Page.navigate", url=path.as_uri())
        deadline = time.monotonic() + 30
        while self.js("document.readyState + location.href") != "complete" + path.as_uri():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        return float(self.js("performance.timing.loadEventEnd - performance.timing.navigationStart"))

    def js(self, expression: str) -> Any:
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def noise(self) -> list[dict[str, Any]]:
        """What the page wrote to the console, raised or asked, since it was opened."""
        self.js("1")
        return [event for event in self.events if event.get("method") in NOISE]

    def requests(self) -> set[str]:
        """Every address that the page asked for since it was opened, itself included."""
        return {e["params"]["request"]["url"] for e in self.events if e.get("method") == "Network.requestWillBeSent"}

    def size(self, width: int, height: int) -> None:
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def media(self, media: str = "", scheme: str = "light") -> None:
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", media=media, features=features)

    def unfold(self) -> None:
        """Open whatever can be unfolded."""
        self.js("document.querySelectorAll('details').forEach((d) => { d.open = true; })")

    def key(self, key: str, code: int) -> None:
        text = {"text": "\r"} if key == "Enter" else {}
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **text)
