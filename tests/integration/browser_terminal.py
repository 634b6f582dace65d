# SPDX-License-Identifier: MIT
"""A page in Chromium that opens a terminal, and somebody who types into it. Not collected by itself: make check-browser."""

import functools
import http.server
import json
import re
import shutil
import subprocess
import threading
import urllib.parse

import pytest
import websocket
from orchard_server import eventually

CHROMIUM = shutil.which("chromium-headless-shell") or shutil.which("chromium")

PAGE = """<!doctype html><meta charset="utf-8"><title>waiting</title>
<style>body { background: #111; color: #ddd; font: 15px monospace }</style>
<pre id="screen" tabindex="0"></pre>
<script>
const wanted = new URLSearchParams(location.search), screen_ = document.getElementById("screen");
const utf8 = new TextDecoder(), bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
const ws = new WebSocket(wanted.get("url"), ["orchard.pty.v1", "api_key." + wanted.get("key")]);
const say = (type, more) => ws.send(JSON.stringify({ type, ...more }));
const type = (text) => say("stdin", { data: btoa(String.fromCharCode(...new TextEncoder().encode(text))) });
ws.onopen = () => say("init", { cmd: ["bash", "--norc"], env: { PS1: "$ ", TERM: "dumb", LC_ALL: "C.UTF-8" }, rows: 30, cols: 90 });
ws.onmessage = (event) => {
    const message = JSON.parse(event.data);
    if (message.type === "ready") document.title = "ready";
    if (message.type === "stdout") screen_.textContent += utf8.decode(bytes(message.data), { stream: true });
    if (message.type === "exit") screen_.textContent += "[exit " + message.code + "]";
};
ws.onclose = (event) => document.title = ["closed", event.code, event.wasClean, ws.protocol].join(" ");
screen_.onkeydown = (event) => {
    if (event.ctrlKey && event.key === "c") type("\\x03");
    else if (event.key === "Enter") type("\\r");
    else if (event.key.length === 1) type(event.key);
    event.preventDefault();
};
screen_.focus();
window.grow = () => say("resize", { rows: 40, cols: 120 });
</script>
"""


class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(PAGE.encode())

    def log_message(self, *args):
        pass


class Tab:
    """One page of the browser, over the DevTools protocol."""

    def __init__(self, endpoint):
        self.ws = websocket.create_connection(endpoint, timeout=60, suppress_origin=True)
        self.last = 0
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

    session = None

    def ask(self, method, **params):
        self.last += 1
        self.ws.send(json.dumps({"id": self.last, "method": method, "params": params}
                                | ({"sessionId": self.session} if self.session else {})))
        while (heard := json.loads(self.ws.recv())).get("id") != self.last:
            pass
        assert "error" not in heard, heard
        return heard["result"]

    def value(self, expression):
        return self.ask("Runtime.evaluate", expression=expression)["result"].get("value")

    def screen(self):
        return self.value("document.getElementById('screen')?.textContent") or ""

    def key(self, key, text=None, modifiers=0):
        more = {"text": text} if text else {}
        self.ask("Input.dispatchKeyEvent", type="keyDown", key=key, modifiers=modifiers, **more)
        self.ask("Input.dispatchKeyEvent", type="keyUp", key=key, modifiers=modifiers)

    def type(self, line):
        for character in line:
            self.key(character, character)
        self.key("Enter", "\r")

    def see(self, words):
        eventually(lambda: words in self.screen(), 60, lambda: self.screen() + " / " + str(self.value("document.title")))


@pytest.fixture
def tab(tmp_path):
    browser = subprocess.Popen(
        [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
         f"--user-data-dir={tmp_path}/profile", "--remote-debugging-port=0", "about:blank"],
        stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    try:
        endpoint = next(found[0] for line in browser.stderr if (found := re.search(r"ws://\S+", line)))
        threading.Thread(target=functools.partial(list, browser.stderr), daemon=True).start()  # it talks on
        yield Tab(endpoint)
    finally:
        browser.kill()
        browser.wait()


@pytest.fixture
def site():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


def test_somebody_types_into_a_page(server, box, tab, site):
    query = urllib.parse.urlencode({"url": f"ws://127.0.0.1:{server.port}{box.url}/exec/pty", "key": server.key})
    tab.ask("Page.navigate", url=f"{site}?{query}")
    tab.see("$ ")
    tab.type("echo got-$((6*7)) ü; stty size")
    tab.see("got-42 ü\r\n30 90\r\n$ ")
    tab.value("grow()")
    tab.type("sleep 600; echo not-here-$?")
    tab.see("not-here-$?\r\n")
    tab.key("c", modifiers=2)
    tab.type("echo after-$?; stty size")
    tab.see("after-130\r\n40 120\r\n$ ")
    assert "not-here-0" not in tab.screen()
    print(tab.screen())
    tab.type("exit 3")
    tab.see("[exit 3]")
    eventually(lambda: tab.value("document.title") == "closed 1000 true orchard.pty.v1", 60, lambda: tab.value("document.title"))


def test_a_page_with_a_wrong_key_gets_no_terminal(server, box, tab, site):
    query = urllib.parse.urlencode({"url": f"ws://127.0.0.1:{server.port}{box.url}/exec/pty", "key": "wrong"})
    tab.ask("Page.navigate", url=f"{site}?{query}")
    eventually(lambda: tab.value("document.title") == "closed 1006 false", 60, lambda: tab.value("document.title"))
    assert tab.screen() == ""
