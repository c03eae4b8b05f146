"""What the page is to readers of all kinds: in the dark, on a phone, by ear, without scripts."""

from pathlib import Path

import pytest

from ..originals import FOLDER, original
from .browser import Browser, written

pytest.importorskip("selenium", reason="selenium is not installed")

from selenium.webdriver.common.keys import Keys

ROOT = Path(__file__).parents[2]
REFERENCE = FOLDER / "ch37-incremental-attention" / "trace.txt"
CUT_OFF = """
  const room = document.querySelector("#record").getBoundingClientRect().right;
  const cut = (part) => part.getBoundingClientRect().right > room
    || (part.scrollWidth > part.clientWidth + 1 && getComputedStyle(part).overflowX !== "auto");
  const parts = [...document.querySelectorAll("#record .numbers")];
  return parts.filter(cut).map((part) => part.outerHTML);
"""
GATED = "#POSITION-FORWARD[position=0].gated[2]"


def background(browser: Browser) -> str:
    colour: str = browser.run("return getComputedStyle(document.body).backgroundColor")
    return colour


PRESSED = "document.getElementById('theme-button').getAttribute('aria-pressed') === '{}'"


def test_dark_and_light(swiglu: Browser) -> None:
    light = background(swiglu)
    swiglu.prefer(prefers_color_scheme="dark")
    dark = background(swiglu)
    assert (light, dark) == ("rgb(246, 245, 241)", "rgb(20, 23, 28)")
    button = swiglu.one("#theme-button")
    swiglu.wait(PRESSED.format("true"))  # the page hears of it a moment later
    button.click()
    assert (background(swiglu), button.get_attribute("aria-pressed")) == (light, "false")
    node = "return getComputedStyle(document.querySelector('#graph .node text:not(.record)')).fill"
    assert swiglu.run(node) == "rgb(27, 31, 36)"  # the drawing follows the button too
    swiglu.prefer(prefers_color_scheme="light")
    swiglu.wait("!matchMedia('(prefers-color-scheme: dark)').matches")
    button.click()
    assert (background(swiglu), button.get_attribute("aria-pressed")) == (dark, "true")


def test_motion_is_reduced(swiglu: Browser) -> None:
    swiglu.press("j")
    script = "return getComputedStyle(document.querySelector('button.number')).transitionDuration"
    swiglu.prefer(prefers_reduced_motion="no-preference")
    assert swiglu.run(script) != "0s"
    swiglu.prefer(prefers_reduced_motion="reduce")
    assert swiglu.run(script) == "0s"


@pytest.mark.parametrize(
    "source",
    ["swiglu", "encoder-block", "vit-patches", pytest.param(str(REFERENCE), marks=original)],
)
def test_narrow_screens_do_not_scroll_sideways(browser: Browser, pages: Path, source: str) -> None:
    browser.size(360, 740)
    browser.open(written(pages, source))
    for _ in range(12):
        browser.press("j")
        buttons = browser.all("#record button.number")
        if buttons:
            browser.run("arguments[0].focus()", buttons[-1])
        assert browser.run(CUT_OFF) == []
        wide = "document.documentElement.scrollWidth"
        assert browser.run(f"return {wide} <= innerWidth"), (
            browser.status(),
            browser.run(f"return {wide}"),
        )


def test_everything_interactive_has_a_name(swiglu: Browser) -> None:
    swiglu.run("location.hash = arguments[0]", GATED)
    swiglu.wait("document.querySelector('#number .uses')")
    swiglu.command("Accessibility.enable")
    nodes = swiglu.command("Accessibility.getFullAXTree")["nodes"]
    told = [
        (node["role"]["value"], node.get("name", {}).get("value", ""))
        for node in nodes
        if not node["ignored"]
    ]
    interactive = [name for role, name in told if role in ("button", "link", "DisclosureTriangle")]
    assert len(interactive) > 60
    assert all(interactive)
    navigation = [("navigation", "Steps"), ("navigation", "Records")]
    others = [("banner", ""), ("main", ""), ("complementary", "gated[2]"), ("status", "")]
    for landmark in (*navigation, *others):
        assert landmark in told
    for way in ("First", "Previous", "Next", "Last"):
        assert ("button", f"{way} record") in told
    assert ("button", "gated, index 2, 2.193175735890") in told
    assert ("heading", "POSITION-FORWARD position=0") in told
    node = "POSITION-FORWARD position=0, gated = gate-silu * up, shape 3, "
    assert any(role == "button" and name.startswith(node) for role, name in told)
    assert swiglu.one("#graph svg").get_attribute("role") == "group"
    assert ("link", "3.000000000000, POSITION-FORWARD[position=0].up[2]") in told
    focusable = [
        node
        for node in nodes
        if any(
            item["name"] == "focusable" and item["value"].get("value")
            for item in node.get("properties", [])
        )
        and not node["ignored"]
        and node["role"]["value"] not in ("RootWebArea",)
    ]
    assert all(node.get("name", {}).get("value") for node in focusable)


def test_focus_is_seen(swiglu: Browser) -> None:
    for _ in range(8):
        swiglu.press(Keys.TAB)
        outline = "getComputedStyle(document.activeElement).outline"
        assert swiglu.run(f"return {outline}").endswith("solid 3px"), swiglu.run(
            f"return {outline}"
        )


def test_the_text_is_folded_away_and_printed(swiglu: Browser) -> None:
    assert not swiglu.one("#source pre").is_displayed()
    swiglu.run("dispatchEvent(new Event('beforeprint'))")
    assert swiglu.one("#source pre").is_displayed()


def test_without_scripts_the_trace_is_there(browser: Browser, pages: Path) -> None:
    browser.command("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(written(pages, "swiglu"))
        visible = browser.one("#source pre").text
        assert visible.splitlines() == (ROOT / "golden/swiglu.trace").read_text().splitlines()
        assert not browser.one("#next").is_displayed()
        assert "Without JavaScript" in browser.one(".notice").text
    finally:
        browser.command("Emulation.setScriptExecutionDisabled", value=False)
