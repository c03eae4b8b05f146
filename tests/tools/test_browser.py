"""The HTML page in a real browser, headless and offline."""

import re
from pathlib import Path

import pytest

from llm_trace.report.lines import Line
from llm_trace.tools.loading import loaded

from ..originals import FOLDER, original
from .browser import Browser, written

pytest.importorskip("selenium", reason="selenium is not installed")

from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

ROOT = Path(__file__).parents[2]
REFERENCE = FOLDER / "ch37-incremental-attention" / "trace.txt"
GATED = "#POSITION-FORWARD[position=0].gated[2]"
RECORDS = 9  # of swiglu
REALS = re.compile(r"(?:[-\d.e]|inf|nan|[,*|\[\]])+")
TIMES = "\N{MULTIPLICATION SIGN}"


def records(source: str) -> list[Line]:
    return [line for line in loaded(source).lines if line.parts and not line.frame()]


def values(line: Line) -> dict[str, str]:
    """Each field's text; of one with reals, its numbers with commas between them."""
    return {part.key: commas(part.text) for part in line.parts}


def commas(text: str) -> str:
    if not REALS.fullmatch(text) or not re.search(r"\.|e-|[nf]", text):
        return text
    return ",".join(re.findall(r"[^,*|\[\]]+", text))


SHOWN = """
  function shown() {
    const text = (parts) => [...parts].map((part) => part.textContent).join(",");
    const found = {};
    for (const word of document.querySelectorAll("#record .words > div")) {
      found[text(word.querySelectorAll("dt"))] = text(word.querySelectorAll(".value"));
    }
    for (const field of document.querySelectorAll("#record .field")) {
      const key = field.querySelector("h3").firstChild.textContent;
      found[key] = text(field.querySelectorAll("button:not(.cell)"));
    }
    return found;
  }
"""


def shown(browser: Browser) -> dict[str, str]:
    """The same, as it is on the page."""
    found: dict[str, str] = browser.run(f"{SHOWN} return shown()")
    return found


@pytest.mark.parametrize(
    ("forward", "back"),
    [("#next", "#previous"), (Keys.ARROW_RIGHT, Keys.ARROW_LEFT), ("j", "k")],
)
def test_steps_show_every_record(swiglu: Browser, forward: str, back: str) -> None:
    lines = records("swiglu")
    assert len(lines) == RECORDS

    def step(way: str) -> None:
        swiglu.one(way).click() if way.startswith("#") else swiglu.press(way)

    for index, line in enumerate(lines):
        assert swiglu.status().startswith(f"record {index + 1} of {RECORDS}: {line.kind}")
        assert shown(swiglu) == values(line)
        if index < RECORDS - 1:
            step(forward)
    if not forward.startswith("#"):
        step(forward)  # there is nothing more
    assert not swiglu.one("#next").is_enabled()
    for index in reversed(range(RECORDS - 1)):
        step(back)
        assert swiglu.status().startswith(f"record {index + 1} of {RECORDS}:")
    assert not swiglu.one("#previous").is_enabled()


def test_first_and_last(swiglu: Browser) -> None:
    swiglu.press(Keys.END)
    assert swiglu.status().startswith(f"record {RECORDS} of")
    swiglu.press(Keys.HOME)
    assert swiglu.status().startswith("record 1 of")
    swiglu.one("#last").click()
    assert swiglu.address() == "#INDEPENDENCE[changed-position=0,observed-position=1]"
    swiglu.one("#first").click()
    assert swiglu.address() == "#FIXTURE"


def test_keys_with_modifiers_are_the_browsers(swiglu: Browser) -> None:
    ActionChains(swiglu.chrome).key_down(Keys.CONTROL).send_keys("j").key_up(Keys.CONTROL).perform()
    assert swiglu.status().startswith("record 1 of")


def test_the_keys_are_told(swiglu: Browser) -> None:
    swiglu.press("?")
    assert swiglu.one("#keys").is_displayed()
    assert "previous record" in swiglu.one("#keys").text
    swiglu.press("j")
    assert swiglu.status().startswith("record 1 of")
    swiglu.press(Keys.ESCAPE)
    assert not swiglu.one("#keys").is_displayed()


def test_pointing_shows_the_operands(swiglu: Browser) -> None:
    swiglu.press("j")
    gated = swiglu.number("gated, index 2, 2.193175735890")
    swiglu.point(gated)
    assert swiglu.text("#number h2") == "gated[2]"
    assert swiglu.text("#number .worked") == f"gated[2] = 0.731058578630 {TIMES} 3.000000000000"
    assert swiglu.text("#number .result") == "= 2.193175735890"
    facts = dict(zip(swiglu.texts("#number dt"), swiglu.texts("#number dd"), strict=True))
    assert facts == {
        "formula": f"gated = gate-silu {TIMES} up",
        "meaning": "that branch, gated",
        "shape": "3",
        "type": "reals",
        "stands in": "POSITION-FORWARD[position=0]",
    }
    assert swiglu.texts("#number .source-field > p") == ["gate-silu", "up"]
    assert swiglu.texts("#number .source-field a.operand") == ["0.731058578630", "3.000000000000"]
    assert swiglu.texts("#number .source-field .other") == [
        "-0.268941421370", "0.000000000000", "1.000000000000", "2.000000000000"
    ]  # fmt: skip
    assert swiglu.texts("#record .number.operand") == ["0.731058578630", "3.000000000000"]
    assert swiglu.texts("#record .number.user") == ["1.924234314520", "-2.193175735890"]
    assert swiglu.texts("#record .number.chosen") == ["2.193175735890"]
    assert swiglu.address() == "#POSITION-FORWARD[position=0]"


def test_focus_shows_the_operands(swiglu: Browser) -> None:
    swiglu.press("j")
    swiglu.run("arguments[0].focus()", swiglu.number("gated, index 1, 0.000000000000"))
    swiglu.press(Keys.ARROW_DOWN)
    assert swiglu.text("#number .worked") == f"gated[2] = 0.731058578630 {TIMES} 3.000000000000"
    swiglu.press(Keys.ARROW_UP, Keys.ARROW_UP)
    assert swiglu.text("#number .worked") == f"gated[0] = -0.268941421370 {TIMES} 1.000000000000"


def test_a_chosen_number_stays(swiglu: Browser) -> None:
    swiglu.press("j")
    swiglu.number("gated, index 2, 2.193175735890").click()
    assert swiglu.address() == GATED
    assert f"gated[2] = 0.731058578630 {TIMES} 3" in swiglu.text("#said")
    other = swiglu.number("up, index 0, 1.000000000000")
    swiglu.point(other)
    assert swiglu.text("#number h2") == "up[0]"
    swiglu.point(swiglu.one("#number .big"))
    assert swiglu.text("#number h2") == "gated[2]"
    swiglu.press("j")  # the same number of the next record of its kind
    assert swiglu.address() == GATED.replace("=0", "=1")
    swiglu.press(Keys.ESCAPE)
    swiglu.wait("document.querySelector('#number.empty')")
    assert swiglu.address() == "#POSITION-FORWARD[position=1]"


def test_uses_and_operands_are_links(swiglu: Browser) -> None:
    swiglu.run("location.hash = arguments[0]", GATED)
    swiglu.wait("document.querySelector('#number .uses')")
    assert swiglu.texts("#number .uses li") == [
        "output[0] = 1.924234314520",
        "output[1] = -2.193175735890",
        "PARAMETER-GRADIENT[name=ffn.down.weight].values[2,0] = 2.193175735890",
        "PARAMETER-GRADIENT[name=ffn.down.weight].values[2,1] = -0.268941421370",
    ]
    swiglu.all("#number .uses a")[2].click()
    swiglu.wait_for("record 8")
    assert swiglu.texts("#record .number.chosen") == ["2.193175735890"]
    assert swiglu.run("return document.activeElement.textContent") == "2.193175735890"
    assert swiglu.text("#number .worked") == (
        f"values[2,0] = 2.193175735890 {TIMES} 1.000000000000 + "
        f"-0.268941421370 {TIMES} 0.000000000000"
    )
    swiglu.all("#number .worked a")[3].click()
    swiglu.wait_for("record 5")
    assert swiglu.address() == "#POSITION-BACKWARD[position=1].upstream[0]"
    swiglu.one("#number .worked a").click()
    swiglu.wait_for("the fixture")
    assert swiglu.address() == "#fixture.upstream[1,0]"
    assert swiglu.texts("#record .number.chosen") == ["0.0"]
    swiglu.chrome.back()
    swiglu.wait_for("record 5")


def test_gradients_say_of_what(swiglu: Browser) -> None:
    swiglu.run("location.hash = 'PARAMETER-GRADIENT[name=ffn.up.weight].values[1,2]'")
    swiglu.wait("document.querySelector('#number .big')")
    facts = dict(zip(swiglu.texts("#number dt"), swiglu.texts("#number dd"), strict=True))
    assert facts["gradient"] == (
        "of dot(fixture.upstream, POSITION-FORWARD.output) with respect to fixture.up_weight"
    )
    assert facts["that is"] == "how the loss changes with fixture.up_weight[1,2]"
    assert "backward" in swiglu.text("#record header")


@pytest.mark.parametrize(
    ("hash_", "step", "name"),
    [
        (GATED, 2, "gated[2]"),
        ("#line-4", 3, "A number"),
        ("#line-4.gated[1]", 3, "gated[1]"),
        ("#POSITION-BACKWARD[position=1].input-gradient", 5, "input-gradient"),
        ("#PARAMETER-GRADIENT[name=ffn.gate.weight].values[1,2]", 6, "values[1,2]"),
        ("#PARAMETER-GRADIENT[name=ffn.gate.weight].values[5]", 6, "values[1,2]"),
        ("#POSITION-FORWARD[position=0].gated[3]", 2, "gated"),
        ("#POSITION-FORWARD[position=0].nothing[3]", 2, "A number"),
        ("#POSITION-FORWARD[position=7]", 2, "A number"),
        ("#%E0%A4%A", 2, "A number"),
    ],
)
def test_links_lead_to_a_place(
    browser: Browser, pages: Path, hash_: str, step: int, name: str
) -> None:
    browser.open(written(pages, "swiglu"), hash_)
    assert browser.status().startswith(f"record {step} of {RECORDS}:")
    assert browser.text("#number h2") == name


def test_the_outline_leads_to_every_record(swiglu: Browser) -> None:
    assert swiglu.texts("#outline h3") == [
        "FIXTURE", "POSITION-FORWARD", "POSITION-BACKWARD", "PARAMETER-GRADIENT", "INDEPENDENCE"
    ]  # fmt: skip
    links = swiglu.all("#outline section a")
    assert len(links) == RECORDS
    for index, item in enumerate(links):
        item.click()
        swiglu.wait_for(f"record {index + 1} ")
        assert item.get_attribute("aria-current") == "step"
    assert len(swiglu.all("#outline [aria-current]")) == 1


def test_the_graph_leads_to_its_numbers(swiglu: Browser) -> None:
    node = "[data-record='3'][data-field='gate-gradient']"
    swiglu.run("document.querySelector(arguments[0]).dispatchEvent(new Event('click'))", node)
    swiglu.wait_for("record 4")
    assert swiglu.text("#number h2") == "gate-gradient"
    script = "return [...document.querySelectorAll(arguments[0])].map((e) => e.dataset.node)"
    here = swiglu.run(script, "#graph .node.current")
    assert here == [f"POSITION_BACKWARD_position_0_{key}" for key in (
        "upstream", "gated_gradient", "gate_gradient", "up_gradient", "input_gradient"
    )]  # fmt: skip
    assert swiglu.run(script, "#graph .node.chosen") == [
        "POSITION_BACKWARD_position_0_gate_gradient"
    ]
    swiglu.run("arguments[0].focus()", swiglu.number("up-gradient, index 0, -0.268941421370"))
    assert {*swiglu.run(script, "#graph .node.used")} == {
        "POSITION_BACKWARD_position_0_gated_gradient", "POSITION_FORWARD_position_0_gate_silu"
    }  # fmt: skip
    box, spot = (swiglu.one(selector).rect for selector in ("#graph", "#graph .node.chosen"))
    assert box["x"] <= spot["x"] <= box["x"] + box["width"]
    before = swiglu.one("#graph svg").rect["width"]
    swiglu.one("#smaller").send_keys(Keys.ENTER)
    assert swiglu.one("#graph svg").rect["width"] < before
    swiglu.one("#whole").send_keys(Keys.ENTER)
    assert swiglu.one("#graph svg").rect["width"] <= box["width"]


def test_hostile_texts_are_texts(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "hostile.trace"
    text = '"<img src=x onerror=console.error(1)></script>&amp; \\" ☃"'
    lines = (f"KIND|a={text}|b=<b>|c=1.5,2.5", "KIND|a=%41[0]|b=#|c=0.5", "A|b.c=1.5", "A.b|c=2.5")
    file.write_text("\n".join(lines), encoding="utf-8")
    browser.open(written(tmp_path, str(file)))
    assert shown(browser) == {"a": text, "b": "<b>", "c": "1.5,2.5"}
    browser.number("c, index 1, 2.5").click()
    assert browser.text("#number h2") == "c[1]"
    link = browser.address()
    browser.press("j")
    assert shown(browser) == {"a": "%41[0]", "b": "#", "c": "0.5"}
    assert browser.address() == "#KIND[a=%41[0]]"
    browser.chrome.refresh()
    assert browser.status().startswith("record 2 of 4")
    browser.run("location.hash = arguments[0]", link)
    browser.wait("document.querySelector('#number h2').textContent === 'c[1]'")
    for hash_, value in (("#A.b.c", "2.5"), ("#A.b", None), ("#line-3.b.c", "1.5")):
        browser.run("location.hash = arguments[0]", hash_)
        browser.wait_for("record 3" if hash_.startswith("#line") else "record 4")
        assert browser.texts("#number .big") == ([value] if value else [])


@pytest.mark.parametrize(
    "source",
    ["encoder-block", "torch-rnn", "model-ops", pytest.param(str(REFERENCE), marks=original)],
)
def test_other_traces_show_what_they_have(browser: Browser, pages: Path, source: str) -> None:
    browser.open(written(pages, source))
    browser.press(Keys.HOME)
    lines = records(source)
    script = f"""{SHOWN}
      const found = [];
      for (let index = 0; index < arguments[0]; index += 1) {{
        found.push(shown());
        document.getElementById("next").click();
      }}
      return found;
    """
    assert browser.run(script, len(lines)) == [*map(values, lines)]
    assert browser.status().startswith(f"record {len(lines)} of {len(lines)}:")
