"""The gallery's page in real Chromium, opened from disk; a sketch painted again there; a wall of 1,000 paintings."""

from __future__ import annotations

import http.server
import json
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from gallery_kit import EVIL, plain_step, png, pool, rollout, start, step
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from bench.gallery import made_up_run, opened, scrolled
from bench.pages import KIND, colour_scheme, page_browser, resize
from grpo.gallery import build
from render.browser import Browser
from render.settings import RenderSettings

SKETCH = """function setup() {
  createCanvas(200, 200, WEBGL);
  brush.noStroke();
}
function draw() {
  background(250, 244, 230);
  for (let i = 0; i < 4; i++) {
    brush.fill("#c8323c", 150);
    brush.circle(random(-60, 60), random(-60, 60), 30);
  }
}"""
JUDGED = {
    "judge": {
        "won": {"love_one": 0.25},
        "orders": {"love_one": [0.0, 0.5]},
        "reasons": {"love_one": ["softer edges", EVIL]},
        "missing": {"okay_one": "timeout"},
        "bias": None,
        "split": 0,
    }
}


@pytest.fixture(scope="module")
def painted() -> bytes:
    """SKETCH as the farm paints it with the seed of the run's config."""
    browser = Browser(RenderSettings(rasterizer=KIND))
    try:
        browser.start()
        painting = browser.paint(SKETCH, 7)
    finally:
        browser.kill()
    assert painting.png is not None
    return painting.png


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, painted: bytes) -> Path:
    """A gallery of three runs: five steps with every outcome, two plain steps, and one without a step."""
    root = tmp_path_factory.mktemp("gallery")
    run, other, empty = (start(root / name, root / "pool") for name in ("run", "other", "empty"))
    pool(root / "pool")
    for number in (1, 2, 3):
        plain_step(run, number)
        plain_step(other, number, 2)
    rejected = {"outcome": "rejected", "reason": "throws", "detail": EVIL, "terms": {"gate": 0.0}}
    unscored = {"outcome": "unscored", "reason": "judge", "detail": "timeout", "text": EVIL, "subject": EVIL}
    painting = rollout(4, 1, 0.0)["painting"]
    records = [
        rollout(4, 0, 0.9, text=SKETCH, terms_info=JUDGED),
        rollout(4, 1, 0.0, **rejected, painting={**painting, "line": 2}),
        rollout(4, 2, None, **unscored, painting=None),
        rollout(4, 3, 0.3),
    ]
    step(run, 4, records, {0: painted, 3: png("#00ff00")})
    step(run, 5, [rollout(5, 0, 0.5)], {0: png("#777777")}, whole=False)
    build([run, other, empty], root / "out")
    return root / "out"


@pytest.fixture(scope="module")
def driver() -> Iterator[Any]:
    with page_browser() as driver:
        yield driver


@pytest.fixture
def page(driver: Any, folder: Path) -> Callable[[str], Any]:
    """Opens the gallery from disk at an address and waits until the view is there."""
    resize(driver, 1200, 800)

    def open_at(address: str = "", index: Path = folder / "index.html") -> Any:
        driver.get("about:blank")
        driver.get(index.as_uri() + address)
        until(driver, "document.querySelector('main').childElementCount > 0")
        return driver

    return open_at


def until(driver: Any, condition: str, seconds: float = 20.0) -> Any:
    end = time.monotonic() + seconds
    while True:
        found = driver.execute_script(f"return {condition}")
        if found:
            return found
        assert time.monotonic() < end, f"waited in vain for {condition}"
        time.sleep(0.03)


def names(driver: Any) -> list[str]:
    """Addresses of the tiles in the order in which the wall shows them, without what is common to all."""
    tiles = "[...document.querySelectorAll('.tile')].map((one) => [one.getBoundingClientRect(), one.hash])"
    found = driver.execute_script(f"return {tiles}")
    return [hash.removeprefix("#painting/") for box, hash in sorted(found, key=lambda one: (one[0]["y"], one[0]["x"]))]


def press(driver: Any, *keys: str) -> None:
    ActionChains(driver).send_keys(*keys).perform()


def choose(driver: Any, name: str, value: str) -> None:
    driver.find_element(By.CSS_SELECTOR, f'select[name="{name}"] option[value="{value}"]').click()


def text(driver: Any, selector: str) -> str:
    return str(driver.execute_script("return document.querySelector(arguments[0])?.innerText ?? ''", selector))


def test_sorted_by_step_reward_and_term_both_ways(page: Callable[..., Any]) -> None:
    driver = page()
    assert names(driver)[:2] == ["run/5/0", "run/4/0"]
    choose(driver, "sort", "reward")
    until(driver, "gallery.parameters.sort === 'reward'")
    assert names(driver)[:3] == ["run/4/0", "run/5/0", "run/4/3"]
    assert names(driver)[-1] == "run/4/2"  # without a reward: last
    driver.find_element(By.NAME, "down").click()
    until(driver, "gallery.parameters.down === '0'")
    assert names(driver)[0] == "run/4/1"
    assert names(driver)[-1] == "run/4/2"
    choose(driver, "sort", "judge")
    until(driver, "gallery.parameters.sort === 'judge'")
    assert names(driver)[0] == "other/1/0"


def test_filtered_by_outcome_reason_run_and_subject(page: Callable[..., Any]) -> None:
    driver = page()
    assert text(driver, ".count") == "23 paintings"
    for chosen, wanted in (("rejected:throws", ["run/4/1"]), ("unscored:judge", ["run/4/2"])):
        choose(driver, "outcome", chosen)
        until(driver, f"document.querySelectorAll('.tile').length === {len(wanted)}")
        assert names(driver) == wanted
    choose(driver, "outcome", "all")
    choose(driver, "run", "other")
    until(driver, "document.querySelectorAll('.tile').length === 6")
    choose(driver, "subject", "a blue vase")
    until(driver, "document.querySelectorAll('.tile').length === 3")
    driver.refresh()  # the choice is in the address
    until(driver, "document.querySelectorAll('.tile').length === 3")
    assert names(driver) == ["other/3/1", "other/2/1", "other/1/1"]


def test_a_paintings_page_tells_how_its_reward_came_about(page: Callable[..., Any]) -> None:
    driver = page("#painting/run/4/0")
    rows = driver.execute_script(
        "return [...document.querySelectorAll('.scores tr:not(.info)')].map((r) => r.innerText)"
    )
    cells = {row.split("\t")[0]: row.split("\t")[1:] for row in rows}
    assert cells["judge"] == ["0.900", "0.50", "0.450"]
    assert cells["preference (stand-in)"] == ["0.250", "0.30", "0.075"]
    assert cells["reward"] == ["0.900"]
    facts = text(driver, ".facts")
    assert "100" in facts
    assert "1.50 s" in facts
    assert text(driver, ".code .keyword") == "function"
    chip = "getComputedStyle(document.querySelector('.code .chip')).backgroundColor"
    assert driver.execute_script(f"return {chip}") == "rgb(200, 50, 60)"


def test_the_judges_comparisons_stand_beside_the_references(page: Callable[..., Any]) -> None:
    driver = page("#painting/run/4/0")
    driver.execute_script("document.querySelector('.judge').scrollIntoView()")
    until(driver, "[...document.querySelectorAll('.judge img')].every((image) => image.naturalWidth > 0)")
    sources = driver.execute_script(
        "return [...document.querySelectorAll('.judge img')].map((i) => i.getAttribute('src'))"
    )
    first = sources[:2]
    assert first == ["paintings/run/step_0004_00.png", "references/run/love_one.png"]
    told = text(driver, ".judge")
    assert "25 % of the comparison won (shown first 0.00, second 0.50)" in told
    assert "The painting shown first: softer edges" in told
    assert "No answer: timeout" in told


def test_words_of_policy_and_judge_are_never_markup(page: Callable[..., Any]) -> None:
    for address in ("#painting/run/4/0", "#painting/run/4/1", "#painting/run/4/2", "#wall", "#film"):
        driver = page(address)
        time.sleep(0.1)
        assert "EVIL" not in driver.title
        assert driver.execute_script("return document.querySelectorAll('[onerror], [onload]').length") == 0
    driver = page("#painting/run/4/1")
    assert EVIL in text(driver, ".why")
    assert "(line 2)" in text(driver, ".why")
    assert text(driver, ".marked").strip() == "function setup() {}"


def test_a_sketch_is_painted_again_with_the_same_seed(page: Callable[..., Any]) -> None:
    """By the same rasterizer the live painting is the stored one, to the last pixel; another sketch's is not."""
    driver = page("#painting/run/4/0")
    press(driver, "p")
    until(
        driver, "document.querySelector('#live')?.naturalWidth === 200 && document.querySelector('.said').dataset.mean"
    )
    assert text(driver, ".said").endswith("Equal to the stored painting to the last pixel.")
    assert driver.execute_script("return document.querySelectorAll('.live figure').length") == 3
    found = driver.execute_async_script(
        """const [done] = arguments, painting = gallery.byKey.get("run/4/0"), { live } = gallery.run("run");
        (async () => {
          const { text, checksum } = await gallery.detail(painting);
          const report = await gallery.paint(document.querySelector(".live .picture"), { ...live, seed: 8 }, text);
          done(await gallery.compare(report.png, await gallery.fieldsOf(painting), checksum));
        })();"""
    )
    assert found["equal"] is False
    assert found["mean"] > 1
    assert found["share"] > 0.05


def test_the_live_frame_is_sealed(page: Callable[..., Any]) -> None:
    driver = page("#painting/run/4/0")
    reports = []
    for line in (
        "parent.document.title = 'EVIL';",
        "fetch('https://example.org');",
        "import('data:text/javascript,0');",
    ):
        sketch = SKETCH.replace("background(", f"{line}\n  background(")
        report = driver.execute_async_script(
            """const [sketch, done] = arguments, run = gallery.run("run");
            gallery.paint(document.querySelector(".canvas"), run.live, sketch).then(done);""",
            sketch,
        )
        reports.append((report.get("refusal") or {}).get("reason"))
        page("#painting/run/4/0")
    assert reports == ["outside_access"] * 3
    assert driver.execute_script("return document.title") != "EVIL"


def test_the_film_plays_to_its_end(page: Callable[..., Any]) -> None:
    driver = page("#film?run=run&step=1")
    assert text(driver, ".step") == "Step 1"
    shown = "[...document.querySelectorAll('.three img')].map((image) => image.getAttribute('src'))"
    until(driver, f"{shown}.every(Boolean)")
    stills = [f"paintings/run/step_0001_0{index}.png" for index in (3, 2, 0)]
    assert driver.execute_script(f"return {shown}") == stills
    driver.execute_script("document.querySelector('.deck select').value = '8'")
    steps = """window.seen = []; new MutationObserver(() => seen.push(document.querySelector('.step').dataset.step))
        .observe(document.querySelector('.step'), { attributes: true });"""
    driver.execute_script(steps)
    press(driver, " ")
    until(driver, "document.querySelector('#play').getAttribute('aria-pressed') === 'false' && seen.length > 0")
    assert driver.execute_script("return seen") == ["2", "3", "4", "5"]
    press(driver, Keys.ARROW_LEFT)
    assert text(driver, ".step") == "Step 4"
    until(driver, f"{shown}[0] === 'paintings/run/step_0004_00.png'")


def test_several_runs_side_by_side_at_the_same_step(page: Callable[..., Any]) -> None:
    driver = page("#film?step=2")
    until(driver, "document.querySelectorAll('.reel').length === 3")
    found = "[...document.querySelectorAll('.three')].map((reel) => reel.querySelector('img').getAttribute('src'))"
    until(driver, f"{found}[1]")
    assert driver.execute_script(f"return {found}")[:2] == [
        "paintings/run/step_0002_03.png",
        "paintings/other/step_0002_01.png",
    ]
    assert "no painting at this step" in text(driver, ".reel:nth-child(3)")


def test_the_best_are_the_best(page: Callable[..., Any]) -> None:
    driver = page("#best?count=12")
    assert names(driver)[:3] == ["run/4/0", "run/5/0", "run/4/3"]
    assert len(names(driver)) == 12


def test_curves_tell_their_values_and_lead_to_the_step(page: Callable[..., Any]) -> None:
    driver = page("#curves?run=run")
    titles = driver.execute_script("return [...document.querySelectorAll('.chart h2')].map((title) => title.innerText)")
    assert titles == ["Reward", "Entropy", "Outcomes"]
    place = """const box = document.querySelectorAll('.chart svg')[1].getBoundingClientRect();
        const at = { clientX: box.x + box.width * (40 + 410 / 3) / 460, clientY: box.y + 20, bubbles: true };
        document.querySelectorAll('.chart svg')[1].dispatchEvent(new %s(arguments[0], at));"""
    driver.execute_script(place % "PointerEvent", "pointermove")
    assert "0.500" in text(driver, ".chart:nth-child(2) .legend")
    assert "0.035" in text(driver, ".chart:nth-child(1) .legend")
    driver.execute_script(place % "MouseEvent", "click")
    until(driver, "document.querySelector('.step')?.dataset.step === '2'")


def test_everything_from_the_keyboard(page: Callable[..., Any]) -> None:
    driver = page()
    press(driver, "?")
    assert "play, pause" in text(driver, "dialog[open]")
    press(driver, Keys.ESCAPE)
    press(driver, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    assert driver.switch_to.active_element.get_attribute("href").endswith("#painting/run/4/0")
    press(driver, Keys.ENTER)
    until(driver, "document.querySelector('.painting')")
    press(driver, Keys.ARROW_RIGHT)
    until(driver, "location.hash === '#painting/run/4/1' && document.querySelector('.why')")
    press(driver, Keys.ESCAPE)
    until(driver, "document.querySelector('.wall')")
    assert driver.switch_to.active_element.get_attribute("href").endswith("#painting/run/4/1")
    for key, view in (("2", "best"), ("3", "film"), ("4", "curves"), ("1", "wall")):
        press(driver, key)
        until(driver, f"document.body.dataset.view === '{view}'")
    press(driver, "d", "d")
    assert driver.execute_script("return document.documentElement.dataset.theme") == "dark"
    press(driver, "d")


def test_nothing_is_wider_than_a_phone(page: Callable[..., Any]) -> None:
    for view in ("#wall", "#best", "#film", "#curves", "#painting/run/4/0", "#painting/run/4/1"):
        driver = page(view)
        for width in (390, 320):
            resize(driver, width, 844, 2, True)
            time.sleep(0.1)
            assert driver.execute_script("return [innerWidth, document.documentElement.scrollWidth]") == [
                width,
                width,
            ], view


def test_dark_where_the_system_is_dark(page: Callable[..., Any]) -> None:
    def luminances() -> list[float]:
        """Of paper and of ink."""
        driver = page("#painting/run/4/0")
        colours = driver.execute_script(
            "const style = getComputedStyle(document.body);"
            "return [style.backgroundColor, style.color].map((colour) => colour.match(/\\d+/g))"
        )
        return [sum(map(int, colour[:3])) / 3 for colour in colours]

    driver = page()
    try:
        colour_scheme(driver, "dark")
        paper, ink = luminances()
        assert paper < 40
        assert ink > 200
        colour_scheme(driver, "light")
        paper, ink = luminances()
        assert paper > 220
        assert ink < 80
    finally:
        colour_scheme(driver, "")


def test_every_control_has_a_name(page: Callable[..., Any]) -> None:
    nameless = """
      const named = (one) => one.innerText || one.ariaLabel || one.getAttribute("alt") || one.labels?.[0]?.innerText;
      const silent = (one) => one.hidden || one.closest(".difference, [hidden]");
      const all = document.querySelectorAll("button, select, input, a, img, svg[role]");
      return [...all].filter((one) => !named(one) && !silent(one)).map((one) => one.outerHTML);"""
    for view in ("#wall", "#best", "#film?step=4&run=run", "#curves", "#painting/run/4/0"):
        driver = page(view)
        time.sleep(0.2)
        assert driver.execute_script(nameless) == [], view


def test_nothing_is_asked_of_the_network_or_refused_by_the_policy(page: Callable[..., Any]) -> None:
    driver = page("#wall")
    driver.get_log("browser")
    for view in ("#best", "#film", "#curves", "#painting/run/4/0"):
        driver = page(view)
        time.sleep(0.1)
        loaded = driver.execute_script("return performance.getEntriesByType('resource').map((entry) => entry.name)")
        assert [name for name in loaded if not name.startswith(("file:", "data:"))] == []
    assert [line["message"] for line in driver.get_log("browser")] == []


class Host(http.server.SimpleHTTPRequestHandler):
    """A web host with the gallery in a folder of it, and with the event stream of a running run."""

    tell = threading.Event()

    def do_GET(self) -> None:
        if not self.path.endswith("/events"):
            return super().do_GET()
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        while self.tell.wait(20):
            self.tell.clear()
            self.wfile.write(b"data: 1\n\n")
            self.wfile.flush()
        return None

    def log_message(self, format: str, *args: object) -> None:
        """Requests are not logged."""


def test_a_running_run_is_followed_without_losing_the_place(driver: Any, tmp_path: Path) -> None:
    run = start(tmp_path / "run")
    for number in range(1, 13):
        plain_step(run, number, 10)
    other = start(tmp_path / "other")
    plain_step(other, 1, 1)
    out = tmp_path / "some" / "where"
    build([run, other], out)
    Host.tell.clear()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Host, directory=str(tmp_path)))
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        resize(driver, 700, 500)
        driver.get(f"http://127.0.0.1:{server.server_port}/some/where/#wall")
        until(driver, "gallery.paintings?.length === 121 && document.querySelector('.tile')")
        driver.execute_script("scrollTo(0, 1500)")
        seen = "[...document.querySelectorAll('.tile')].find((tile) => tile.getBoundingClientRect().top >= 0)"
        top = until(driver, f"{seen} && scrollY === 1500 && {seen}.hash")
        for address in ("#painting/other/1/0", "#wall"):
            driver.execute_script("location.hash = arguments[0]", address)
            until(driver, f"document.querySelector('{'.code' if 'other' in address else '.tile'}')")
        driver.execute_script("scrollTo(0, 1500)")
        plain_step(run, 13, 10)
        build([run, other], out)
        Host.tell.set()
        until(driver, "gallery.paintings.length === 131")
        until(driver, "scrollY > 1500")
        assert driver.execute_script(f"return {seen}.hash").rpartition("/")[0] == top.rpartition("/")[0]
        assert driver.execute_script("return gallery.tables.get('run').step.at(-1)") == 13
        for name in ("other/1/0", "run/13/9"):
            driver.execute_script("location.hash = arguments[0]", f"#painting/{name}")
            until(driver, f"gallery.path === 'painting/{name}' && document.querySelector('.code')")
    finally:
        driver.get("about:blank")
        server.shutdown()
        server.server_close()


def test_without_the_studio_the_page_says_why(page: Callable[..., Any], folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    shutil.copytree(folder, out)
    told = (out / "data" / "runs.js").read_text()
    value = json.loads("[" + told[told.index("(") + 1 : told.rindex(")")] + "]")[2]
    value["live"] = "p5.min.js was not installed"
    for one in value["runs"]:
        one["live"] = None
    (out / "data" / "runs.js").write_text(f'gallery.put("runs", "", {json.dumps(value)});')
    driver = page("#painting/run/4/0", out / "index.html")
    assert text(driver, ".live") == "It cannot be painted again here: p5.min.js was not installed."
    assert driver.find_elements(By.ID, "repaint") == []


def test_a_thousand_paintings_open_and_scroll_without_a_blank_tile(driver: Any, tmp_path: Path) -> None:
    """As bench.gallery measures it, with small pictures and a wide margin for a machine that is busy."""
    run = tmp_path / "run"
    made_up_run(run, 1000, side=64)
    index = build([run], tmp_path / "out")
    resize(driver, 1440, 900)
    assert max(opened(driver, index)) < 4000
    frames = scrolled(driver, speed=16000)
    assert len(frames) > 50
    assert sum(frame[2] for frame in frames) == 0
    assert driver.execute_script("return document.querySelectorAll('.tile').length") < 250
