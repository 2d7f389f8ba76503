"""A headless Chromium for a test, driven by its own protocol over two pipes."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import shutil
import subprocess
import time
from itertools import count
from pathlib import Path

__all__ = ["Browser", "find_chromium"]

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--no-proxy-server",
    "--remote-debugging-pipe",
)


def find_chromium():
    """Return the path of the browser; None if this machine has none."""
    return next(filter(None, map(shutil.which, _NAMES)), None)


class Browser:
    """One window; it ends with the ``with`` block."""

    def __init__(self, folder: Path, *, width=1400, height=1000):
        self._folder = folder
        self._size = f"--window-size={width},{height}"
        self._numbers = count(1)
        self._session = None

    def __enter__(self):
        its_input, to_it = os.pipe()
        from_it, its_output = os.pipe()

        def as_three_and_four():
            """The descriptors over which the protocol is spoken."""
            ours = [fcntl.fcntl(each, fcntl.F_DUPFD, 10) for each in (its_input, its_output)]
            for descriptor, each in zip((3, 4), ours, strict=True):
                os.dup2(each, descriptor)

        self._process = subprocess.Popen(
            [find_chromium(), *_FLAGS, self._size, f"--user-data-dir={self._folder}/profile"],
            preexec_fn=as_three_and_four,
            close_fds=False,  # all others are closed by exec
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "HOME": str(self._folder)},
        )
        os.close(its_input)
        os.close(its_output)
        self._to, self._from = os.fdopen(to_it, "wb", 0), os.fdopen(from_it, "rb")
        target = self._say("Target.createTarget", url="about:blank")["targetId"]
        found = self._say("Target.attachToTarget", targetId=target, flatten=True)
        self._session = found["sessionId"]
        return self

    def __exit__(self, *_):
        try:
            self._session = None
            self._say("Browser.close")
            self._process.wait(timeout=20)
        finally:
            self._process.kill()
            self._process.wait()
            self._to.close()
            self._from.close()

    def open(self, url):
        """Go to a page; what it loads may still be under way."""
        self._say("Page.navigate", url=url)

    def ask(self, expression):
        """The value of some JavaScript in the page."""
        answer = self._say("Runtime.evaluate", expression=expression, returnByValue=True)
        return answer["result"].get("value")

    def wait_for(self, expression, *, seconds=60):
        """Return when some JavaScript is true."""
        give_up = time.monotonic() + seconds
        while time.monotonic() < give_up:
            if self.ask(f"(() => {{ try {{ return !!({expression}) }} catch {{ }} }})()"):
                return
            time.sleep(0.3)
        raise AssertionError(f"never seen: {expression}; the page says: {self.text()}")

    def text(self):
        """Return the text of the page and its frames."""
        return self.ask(
            "[document, ...[...document.querySelectorAll('iframe')].map(f => f.contentDocument)]"
            ".filter(d => d && d.body).map(d => d.body.innerText).join('\\n')"
        )

    def wait_for_text(self, words, *, seconds=60):
        """Return the text of the page once it contains a text."""
        give_up = time.monotonic() + seconds
        while words not in (found := self.text() or ""):
            if time.monotonic() > give_up:
                raise AssertionError(f"never seen: {words}; the page says: {found}")
            time.sleep(0.3)
        return found

    def fill(self, selector, text):
        """Type into a field."""
        self.wait_for(f"document.querySelector({json.dumps(selector)})")
        self.ask(f"document.querySelector({json.dumps(selector)}).focus()")
        self._say("Input.insertText", text=text)

    def click(self, element):
        """Press the mouse on what some JavaScript finds, scrolled to where it can be seen."""
        self.wait_for(element)
        self.ask(f"({element}).scrollIntoView({{block: 'center', behavior: 'instant'}})")
        box = self.ask(f"(({element}).getBoundingClientRect()).toJSON()")
        at = {"x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2}
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            button = "none" if kind == "mouseMoved" else "left"
            self._say("Input.dispatchMouseEvent", type=kind, button=button, clickCount=1, **at)

    def screenshot(self, path):
        """Return a screenshot as a PNG file."""
        shot = self._say("Page.captureScreenshot", format="png")
        Path(path).write_bytes(base64.b64decode(shot["data"]))

    def _say(self, method, **params):
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        self._to.write(json.dumps(message).encode() + b"\0")
        while True:
            answer = json.loads(self._next_message())
            if answer.get("id") == number:
                assert "error" not in answer, (method, answer["error"])
                return answer["result"]

    def _next_message(self):
        found = bytearray()
        while (byte := self._from.read(1)) != b"\0":
            assert byte, "the browser has ended"
            found += byte
        return bytes(found)
