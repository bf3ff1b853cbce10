"""A headless Chromium that a test steers through its DevTools pipe: pages, their errors, their DOM, pictures and prints of them.
It has no network: the page must not ask for one."""
import base64
import fcntl
import json
import os
import select
import subprocess
import tempfile

LIMIT = 300  # seconds for an answer; what takes longer hangs, however slow the machine is


def high_pipe():
    """Neither of its ends is 3 or 4, which are to be something else."""
    ends = os.pipe()
    high = tuple(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends)
    for end in ends:
        os.close(end)
    return high


class Browser:
    """`with Browser() as browser`. Messages are JSON texts that end with a NUL byte: file descriptor 3 in, 4 out."""

    def __init__(self, program="chromium"):
        self.folder = tempfile.TemporaryDirectory(prefix="dlrun-browser-")
        (to_read, self.to_write), (self.from_read, from_write) = high_pipe(), high_pipe()
        arguments = ["--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars",
                     "--disable-background-networking", "--proxy-server=127.0.0.1:9", f"--user-data-dir={self.folder.name}", "about:blank"]
        # A shell moves the pipes to 3 and 4.
        shell = ["/bin/bash", "-c", f'exec "$0" "$@" 3<&{to_read} 4>&{from_write} {to_read}<&- {from_write}>&-', program, *arguments]
        self.process = subprocess.Popen(shell, pass_fds=(to_read, from_write), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        env=dict(os.environ, HOME=self.folder.name))
        os.close(to_read)
        os.close(from_write)
        self.rest, self.number, self.session, self.events = b"", 0, None, []

    def __enter__(self):
        try:
            target = self.call("Target.createTarget", url="about:blank")["targetId"]
            self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            for domain in ("Page", "Runtime", "Log", "Network"):
                self.call(f"{domain}.enable")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.close(self.to_write)
        os.close(self.from_read)
        self.folder.cleanup()

    def message(self):
        while b"\0" not in self.rest:
            if not select.select([self.from_read], [], [], LIMIT)[0]:
                raise TimeoutError(f"the browser said nothing for {LIMIT} s")
            piece = os.read(self.from_read, 1 << 20)
            if not piece:
                raise EOFError("the browser ended")
            self.rest += piece
        text, _, self.rest = self.rest.partition(b"\0")
        message = json.loads(text)
        if message.get("method") == "Page.javascriptDialogOpening":  # it waits for somebody to close it
            raise RuntimeError(f"the page opens a dialog: {message['params']['message']}")
        return message

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to_write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.message()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def open(self, path):
        """Loads the page and waits until it is drawn."""
        self.events.clear()
        self.call("Page.navigate", url="file://" + os.path.abspath(path))
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self.message())
        self.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def problems(self):
        """What the console shows as errors, exceptions, and requests for anything but the file itself."""
        out = []
        for event in self.events:
            method, told = event.get("method"), event.get("params", {})
            if method == "Runtime.exceptionThrown":
                details = told["exceptionDetails"]
                out.append(details.get("exception", {}).get("description", details["text"]))
            if method == "Runtime.consoleAPICalled" and told["type"] in ("error", "warning", "assert"):
                out.append(json.dumps(told["args"]))
            if method == "Log.entryAdded" and told["entry"]["level"] in ("error", "warning"):
                out.append(told["entry"]["text"])
            if method == "Network.requestWillBeSent" and not told["request"]["url"].startswith(("file://", "data:")):
                out.append("asks for " + told["request"]["url"])
        return out

    def evaluate(self, script):
        answer = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"].get("exception", {}).get("description", "?"))
        return answer["result"].get("value")

    def window(self, width, height=900, scheme="light", phone=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=2 if phone else 1, mobile=phone)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def key(self, name):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=name, code=name, windowsVirtualKeyCode={"Tab": 9, "ArrowLeft": 37, "ArrowRight": 39, "Home": 36, "End": 35}.get(name, 0))

    def picture(self, path):
        """Of the whole page, as PNG."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def print(self, path):
        """As PDF, on A4."""
        data = self.call("Page.printToPDF", paperWidth=8.27, paperHeight=11.69, printBackground=False)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))
