"""A headless Chromium for what only a browser can say. Nothing is downloaded."""

import json
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("selenium", reason="selenium is not installed")

from selenium.webdriver import ActionChains, Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.wait import WebDriverWait

from llm_trace.tools.diagram.drawing import html
from llm_trace.tools.diagram.graph import graph_of
from llm_trace.tools.diagram.references import graph_of_lines
from llm_trace.tools.loading import loaded

OPTIONS = (
    "--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run --mute-audio "
    "--disable-background-networking --disable-component-update --disable-sync "
    "--disable-default-apps --disable-dev-shm-usage --window-size=1400,1000"
)


@contextmanager
def browsing(profile: Path) -> Iterator["Browser"]:
    """A browser with an empty profile in that folder."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    assert chromium
    assert driver
    options = ChromeOptions()
    options.binary_location = chromium
    for argument in (*OPTIONS.split(), f"--user-data-dir={profile}"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    chrome = Chrome(options=options, service=Service(executable_path=driver))
    chrome.get("about:blank")
    try:
        yield Browser(chrome)
    finally:
        chrome.quit()


class Browser:
    """What the tests ask of a page."""

    def __init__(self, chrome: Chrome) -> None:
        self.chrome = chrome
        self.opened: set[str] = set()

    def open(self, file: Path, hash_: str = "") -> None:
        """Load a page anew, without a network."""
        self.chrome.get("about:blank")
        self.command("Network.enable")
        self.command(
            "Network.emulateNetworkConditions",
            offline=True,
            latency=0,
            downloadThroughput=0,
            uploadThroughput=0,
        )
        self.opened.add(file.as_uri())
        self.chrome.get(f"{file.as_uri()}{hash_}")

    def command(self, name: str, **arguments: Any) -> Any:
        """A command of the DevTools protocol."""
        return self.chrome.execute_cdp_cmd(name, arguments)

    def size(self, width: int, height: int) -> None:
        """The size of the page, which may be narrower than any window."""
        self.command(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def prefer(self, **features: str) -> None:
        """What the reader's system prefers: `prefers_color_scheme="dark"`."""
        listed = [
            {"name": name.replace("_", "-"), "value": value} for name, value in features.items()
        ]
        self.command("Emulation.setEmulatedMedia", features=listed)

    def logs(self) -> list[str]:
        """What the console has said since it was last asked."""
        return self._messages("browser")

    def requests(self) -> list[str]:
        """The addresses that have been asked for since."""
        events = [json.loads(message)["message"] for message in self._messages("performance")]
        return [
            event["params"]["request"]["url"]
            for event in events
            if event["method"] == "Network.requestWillBeSent"
            and not event["params"]["documentURL"].startswith("chrome:")  # its own first tab
        ]

    def _messages(self, kind: str) -> list[str]:
        get_log: Any = self.chrome.get_log
        return [entry["message"] for entry in get_log(kind)]

    def all(self, selector: str) -> list[WebElement]:
        """The elements that a CSS selector finds."""
        return self.chrome.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector: str) -> WebElement:
        """The first of them."""
        return self.chrome.find_element(By.CSS_SELECTOR, selector)

    def texts(self, selector: str) -> list[str]:
        """The texts of all of them, as they stand in the document."""
        script = "return [...document.querySelectorAll(arguments[0])].map((e) => e.textContent)"
        found: list[str] = self.run(script, selector)
        return found

    def text(self, selector: str) -> str:
        """The text of the first."""
        return self.texts(selector)[0]

    def run(self, script: str, *arguments: Any) -> Any:
        """What a script returns."""
        return self.chrome.execute_script(script, *arguments)

    def point(self, element: WebElement) -> None:
        """Move the mouse there."""
        ActionChains(self.chrome).move_to_element(element).perform()

    def press(self, *keys: str) -> None:
        """Press keys one after the other, wherever the focus is."""
        ActionChains(self.chrome).send_keys(*keys).perform()

    def wait(self, condition: str) -> None:
        """Wait until an expression holds."""
        WebDriverWait(self.chrome, 10).until(lambda _: self.run(f"return Boolean({condition})"))

    def wait_for(self, status: str) -> None:
        """Wait until the page says that it shows this."""
        self.wait(f"document.getElementById('status').textContent.startsWith({status!r})")

    def status(self) -> str:
        """What the page says that it shows."""
        return self.text("#status")

    def address(self) -> str:
        """The place in the address."""
        found: str = self.run("return decodeURIComponent(location.hash)")
        return found

    def number(self, label: str) -> WebElement:
        """The button of a number in the record that is shown."""
        return self.one(f"#record button[aria-label='{label}']")


def written(folder: Path, source: str) -> Path:
    """The page of a trace, made once."""
    file = folder / f"{re.sub(r'[^a-z0-9]', '-', source)}.html"
    if not file.exists():
        trace = loaded(source)
        drawn = (
            graph_of(trace.document, trace.title)
            if trace.document
            else graph_of_lines(trace.lines, trace.title)
        )
        file.write_text(html(drawn, trace), encoding="utf-8")
    return file
