"""What is skipped for want of something outside: a test run says all of it in one line."""

import shutil
from collections import Counter

import pytest

from .originals import FOLDER, ORIGINALS


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "original: reads outputs of the original program")


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("original") and not ORIGINALS:
        pytest.skip(f"the original program's outputs are not in {FOLDER}")
    if "chromium" in getattr(item, "fixturenames", ()) and not has_browser():
        pytest.skip("chromium or chromedriver is not installed")


def has_browser() -> bool:
    return bool(shutil.which("chromium") or shutil.which("google-chrome")) and bool(
        shutil.which("chromedriver")
    )


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = terminalreporter.stats.get("skipped", ())
    reasons = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in skipped)
    if reasons:
        told = "; ".join(f"{count}, {reason}" for reason, count in reasons.most_common())
        terminalreporter.write_line(f"skipped: {told}")
