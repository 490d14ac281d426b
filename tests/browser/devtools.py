# SPDX-License-Identifier: Apache-2.0
"""Headless Chromium driven through the DevTools protocol over a pipe; Python's standard library alone."""
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find_chromium():
    """The browser's path, or None."""
    named = os.environ.get("PENSTOCK_CHROMIUM")
    return named or next((path for path in map(shutil.which, NAMES) if path), None)


class Browser:
    """One browser with one page. Requests that the page makes and errors that it reports are kept in lists."""

    def __init__(self, path, width=1200, height=900, timeout=60):
        self.timeout, self.errors, self.requests = timeout, [], []
        self._next, self._rest, self._loaded = 1, b"", False
        self._profile = tempfile.mkdtemp(prefix="penstock-browser-")
        from_us, self._out = os.pipe()
        self._in, to_us = os.pipe()
        arguments = [path, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
                     "--disable-background-networking", "--remote-debugging-pipe", "--force-color-profile=srgb",
                     f"--user-data-dir={self._profile}", "about:blank"]
        # The protocol's pipes are file descriptors 3 and 4 of the browser.
        launcher = ["sh", "-c", f'exec "$@" 3<&{from_us} 4>&{to_us}', "sh"] + arguments
        self._process = subprocess.Popen(launcher, pass_fds=(from_us, to_us), stdout=subprocess.DEVNULL,
                                         stderr=subprocess.DEVNULL)
        os.close(from_us)
        os.close(to_us)
        self._session = None
        page = next(t for t in self.send("Target.getTargets")["targetInfos"] if t["type"] == "page")
        self._session = self.send("Target.attachToTarget", targetId=page["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(domain + ".enable")
        self.resize(width, height)

    def close(self):
        self._process.kill()
        self._process.wait()
        os.close(self._out)
        os.close(self._in)
        shutil.rmtree(self._profile, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def send(self, method, **parameters):
        """One command and its result."""
        message = {"id": self._next, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        self._next += 1
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == message["id"]:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]

    def _receive(self):
        deadline = time.monotonic() + self.timeout
        while b"\0" not in self._rest:
            if not select.select([self._in], [], [], max(0, deadline - time.monotonic()))[0]:
                raise TimeoutError("the browser does not answer")
            part = os.read(self._in, 1 << 20)
            if not part:
                raise RuntimeError("the browser has ended")
            self._rest += part
        text, self._rest = self._rest.split(b"\0", 1)
        message = json.loads(text)
        self._note(message.get("method"), message.get("params", {}))
        return message

    def _note(self, event, values):
        if event == "Runtime.exceptionThrown":
            details = values["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description", details["text"]))
        elif event == "Log.entryAdded" and values["entry"]["level"] in ("error", "warning"):
            self.errors.append(values["entry"]["text"])
        elif event == "Runtime.consoleAPICalled" and values["type"] in ("error", "warning", "assert"):
            self.errors.append(str([argument.get("value") for argument in values["args"]]))
        elif event == "Network.requestWillBeSent":
            self.requests.append(values["request"]["url"])
        elif event == "Page.loadEventFired":
            self._loaded = True

    def open(self, path):
        self.errors, self.requests, self._loaded = [], [], False
        self.send("Page.navigate", url="file://" + os.path.abspath(path))
        while not self._loaded:
            self._receive()

    def evaluate(self, expression):
        answer = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"]["exception"].get("description", expression))
        return answer["result"].get("value")

    def settle(self):
        """Waits until what was asked for has been drawn."""
        self.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")

    def resize(self, width, height):
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def dark(self, on):
        scheme = {"name": "prefers-color-scheme", "value": "dark" if on else "light"}
        self.send("Emulation.setEmulatedMedia", features=[scheme])

    def mouse(self, kind, x, y, **more):
        self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)
        self.settle()

    def key(self, key):
        code = {"ArrowLeft": 37, "ArrowRight": 39, "Escape": 27}.get(key, ord(key[0]))
        text = {"text": key} if len(key) == 1 else {}
        self.send("Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=code, **text)
        self.send("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)
        self.settle()

    def picture(self, path, whole=True, clip=None):
        extra = {"clip": dict(zip(("x", "y", "width", "height"), clip), scale=1)} if clip else {}
        data = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole, **extra)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def print_pdf(self):
        return base64.b64decode(self.send("Page.printToPDF", printBackground=False)["data"])
