"""The page as `diagram --to html` writes it: an overview as its map, heat maps, digits."""

from pathlib import Path

import pytest
from selenium.webdriver.common.keys import Keys

from ..program import run
from .browser import Browser

NINE = ("swiglu", "qkv", "attention-head", "attention-heads", "encoder-block", "gru", "lstm")


def page(folder: Path, name: str) -> Path:
    path = folder / f"overview-{name}.html"
    if not path.exists():
        assert run("diagram", name, "-o", path).returncode == 0
    return path


def test_opens_on_the_first_record_of_the_way_there(browser: Browser, pages: Path) -> None:
    browser.open(page(pages, "attention-head"))
    assert browser.status().startswith("record 2 of 87: PROJECTION[position=0]")
    assert browser.texts("#graph .current .label") == ["input", "query", "key", "value"]
    browser.press(Keys.HOME)
    assert browser.status().startswith("record 1 of 87: FIXTURE")


def test_a_node_of_the_map_leads_to_its_field_in_the_record_that_is_shown(
    browser: Browser, pages: Path
) -> None:
    browser.open(page(pages, "swiglu"), "#POSITION-FORWARD[position=1]")
    browser.one('[data-node="POSITION_FORWARD_gated"]').click()
    assert browser.address() == "#POSITION-FORWARD[position=1].gated"
    assert browser.texts("#graph .chosen .label") == ["gated"]
    browser.one('[data-node="POSITION_BACKWARD_upstream"]').click()
    assert browser.address() == "#POSITION-BACKWARD[position=0].upstream"
    browser.open(page(pages, "swiglu"), "#POSITION-FORWARD[position=0].gate-pre[0]")
    assert browser.texts("#graph .chosen .label") == ["gate-silu"]  # one node for both
    assert browser.texts("#graph .used .label") == ["input"]


def test_scores_are_a_matrix_whose_cells_lead_to_their_records(
    browser: Browser, pages: Path
) -> None:
    browser.open(page(pages, "attention-head"), "#SCORE[query=2,source=1]")
    tables = [*browser.all("#record .heat")]
    assert len(tables) == 6  # dot-product, scaled, shifted, exponential, weight; contribution
    open_ones = browser.texts("#record .heat[open] summary")
    assert open_ones == ["weight: query \u00d7 source"]
    cells = browser.texts("#record .heat[open] .cell")
    assert len(cells) == 49
    assert cells[2 * 7 + 1] == "0.1732"
    cell = browser.all("#record .heat[open] .cell")[3]
    assert cell.get_attribute("aria-label") == "SCORE[query=0,source=3].weight, 0.067860027716"
    strong = browser.run(
        "return [...document.querySelectorAll('.heat[open] .cell')]"
        ".map((e) => Number(e.style.getPropertyValue('--heat')))"
    )
    assert max(strong) == 1
    assert strong.index(1) == cells.index(max(cells))
    browser.point(cell)
    assert browser.text("#number h2") == "weight"
    assert browser.text("#number .big") == "0.067860027716"
    cell.click()
    assert browser.address() == "#SCORE[query=0,source=3].weight"


def test_a_slider_says_how_many_digits(browser: Browser, pages: Path) -> None:
    browser.open(page(pages, "swiglu"), "#POSITION-FORWARD[position=0].gated[2]")
    browser.one("#digits").send_keys(Keys.HOME)
    assert browser.text("#digits-said") == "0"
    for _ in range(3):
        browser.one("#digits").send_keys(Keys.ARROW_RIGHT)
    assert browser.text("#digits-said") == "3"
    number = browser.number("gated, index 2, 2.193175735890")
    assert number.text == "2.193"
    assert browser.text("#number .big") == "2.193175735890"  # whole, wherever one points
    browser.one("#digits").send_keys(Keys.END)
    assert browser.number("gated, index 2, 2.193175735890").text == "2.193175735890"


def test_the_whole_graph_is_whole(browser: Browser, pages: Path) -> None:
    browser.open(page(pages, "encoder-block"))
    browser.one("#whole").click()
    inside = browser.run(
        "const box = document.getElementById('graph').getBoundingClientRect();"
        "const drawn = document.querySelector('#graph svg').getBoundingClientRect();"
        "return drawn.width <= box.width && drawn.height <= box.height && drawn.height > 0"
    )
    assert inside


def test_the_record_stays_in_sight_while_stepping(browser: Browser, pages: Path) -> None:
    browser.size(1280, 700)
    browser.open(page(pages, "attention-head"))
    for _ in range(4):
        browser.press("j")
        top = browser.run("return document.getElementById('record').getBoundingClientRect().top")
        assert 0 < top < 700 * 0.7


@pytest.mark.parametrize("name", NINE)
def test_no_page_is_wider_than_a_phone(browser: Browser, pages: Path, name: str) -> None:
    browser.size(360, 740)
    browser.open(page(pages, name))
    wide = browser.run("return document.documentElement.scrollWidth")
    assert wide <= 360
