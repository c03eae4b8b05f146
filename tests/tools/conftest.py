"""One browser for all tests of the page. It is started when the first of them asks for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .browser import Browser


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    from .browser import browsing

    with browsing(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture
def browser(chromium: Browser) -> Iterator[Browser]:
    """Nothing may be said in its console, and nothing asked for but the pages themselves."""
    chromium.size(1400, 1000)
    chromium.prefer()
    chromium.logs()
    chromium.requests()
    yield chromium
    assert chromium.logs() == []
    assert {*chromium.requests()} <= {"about:blank", *chromium.opened}


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pages")


@pytest.fixture
def swiglu(browser: Browser, pages: Path) -> Browser:
    from .browser import written

    browser.open(written(pages, "swiglu"), "#FIXTURE")
    return browser
