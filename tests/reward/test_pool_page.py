"""The rating page in a real Chromium: keys, undo, filters, pairs, and a server that is killed between two ratings."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest
from judge_parts import shade
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from bench.pages import page_browser
from reward.pool.workshop import read_lines

MODELS = ("brush-7b", "wash-30b")
COUNT = 6


@pytest.fixture(scope="module")
def browser():
    with page_browser(1200, 800) as driver:
        yield driver


class Command:
    """`python -m reward.pool rate FOLDER` as a process that can be killed and started again at the same port."""

    def __init__(self, folder):
        self.folder = folder
        self.port = 0
        self.start()

    def start(self):
        command = [sys.executable, "-m", "reward.pool", "rate", str(self.folder), "--port", str(self.port)]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        self.port = int(re.search(r"127\.0\.0\.1:(\d+)", self.process.stderr.readline())[1])

    def kill(self):
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.process.stderr.close()

    @property
    def lines(self):
        return read_lines(self.folder / "ratings.jsonl")

    @property
    def rated(self):
        return [(line["name"], line["rating"]) for line in self.lines if line["kind"] == "rate"]


@pytest.fixture
def command(tmp_path):
    """Six candidates of two models and three rounds, and the command that serves them."""
    with (tmp_path / "candidates.jsonl").open("w") as stream:
        for number in range(COUNT):
            for name, content in ((f"images/c{number}.png", shade(60 + 20 * number)), (f"sources/c{number}.js", b"//")):
                (tmp_path / name).parent.mkdir(exist_ok=True)
                (tmp_path / name).write_bytes(content)
            about = {"generator_model": MODELS[number % 2], "refinement_round": number % 3}
            stream.write(json.dumps({"name": f"c{number}", "outcome": "painted", **about}) + "\n")
    command = Command(tmp_path)
    yield command
    with contextlib.suppress(ProcessLookupError):
        command.kill()


class Page:
    def __init__(self, driver, command):
        self.driver = driver
        driver.get(f"http://127.0.0.1:{command.port}/")
        self.until(lambda: driver.execute_script("return document.body.dataset.ready") == "yes")

    def until(self, holds):
        limit = time.monotonic() + 15
        while not holds():
            assert time.monotonic() < limit, (self.status, self.shown)
            time.sleep(0.02)

    def press(self, *keys):
        for key in keys:
            ActionChains(self.driver, duration=0).send_keys(key).perform()

    def text(self, name):
        return self.driver.execute_script("return document.getElementById(arguments[0]).textContent", name)

    def state(self):
        return self.driver.execute_script("return document.getElementById('status').dataset.state")

    def saved(self):
        self.until(lambda: self.state() == "saved")

    @property
    def status(self):
        return self.text("status")

    @property
    def shown(self):
        script = "const i = document.getElementById('painting'); return i.checkVisibility() ? i.dataset.name : null"
        return self.driver.execute_script(script)

    def choose(self, name, value):
        Select(self.driver.find_element("id", name)).select_by_value(value)


@pytest.fixture
def page(browser, command):
    return Page(browser, command)


def test_each_key_gives_its_rating_and_the_next_painting_comes(page, command):
    page.press("1", "2", "3", "4")
    page.saved()
    assert command.rated == [("c0", "love"), ("c1", "okay"), ("c2", "nope"), ("c3", "meh")]
    assert (page.shown, page.text("count")) == ("c4", "4 of 6 rated")
    script = "return document.getElementById('painting').naturalWidth"
    page.until(lambda: page.driver.execute_script(script) == 16)


def test_undo_takes_back_the_last_ones_and_shows_them_again(page, command):
    page.press("1", "2")
    page.press("u")
    assert page.shown == "c1"
    page.press(Keys.BACKSPACE)
    assert (page.shown, page.text("count")) == ("c0", "0 of 6 rated")
    page.press("u", "3")
    page.saved()
    kinds = [line["kind"] for line in command.lines]
    assert kinds == ["rate", "rate", "undo", "undo", "rate"]
    page.driver.refresh()
    page.until(lambda: page.text("count") == "1 of 6 rated")


def test_at_the_end_all_are_rated_and_undo_still_works(page):
    page.press(*"121212")
    page.saved()
    assert (page.shown, page.text("empty"), page.text("count")) == (None, "All are rated.", "6 of 6 rated")
    page.press("u")
    assert page.shown == "c5"


def test_arrows_move_without_rating_and_a_rating_can_be_changed(page, command):
    page.press("1")
    page.saved()
    page.choose("filter-rating", "")
    page.press(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    assert (page.shown, page.text("place")) == ("c3", "4 / 6")
    page.press(Keys.ARROW_LEFT, Keys.ARROW_LEFT, Keys.ARROW_LEFT, Keys.ARROW_LEFT)
    assert (page.shown, page.text("rating")) == ("c0", "love ✓")
    page.press("4")
    page.saved()
    assert command.rated == [("c0", "love"), ("c0", "meh")]
    assert page.text("count") == "1 of 6 rated"


def test_filters_leave_what_they_say(page):
    page.choose("filter-model", MODELS[1])
    page.choose("filter-round", "1")
    assert (page.shown, page.text("place")) == ("c1", "1 / 1")
    page.press("1")
    assert (page.shown, page.text("empty")) == (None, "Nothing is left that passes these filters.")
    page.choose("filter-round", "")
    page.choose("filter-model", "")
    page.choose("filter-rating", "love")
    assert (page.shown, page.text("place")) == ("c1", "1 / 1")
    page.choose("filter-rating", "unrated")
    assert page.text("place").endswith("/ 5")


def test_a_server_killed_between_two_ratings_loses_none(page, command):
    page.press("1", "2")
    page.saved()
    command.kill()
    page.press("3")
    page.until(lambda: page.state() == "waiting")
    assert page.status.startswith("1 not saved yet: the command is not running")
    page.press("4", "u", "1")
    assert command.rated == [("c0", "love"), ("c1", "okay")]
    page.press(Keys.ARROW_LEFT)
    command.start()
    page.saved()
    assert command.rated == [("c0", "love"), ("c1", "okay"), ("c2", "nope"), ("c3", "meh"), ("c3", "love")]
    assert [line["kind"] for line in command.lines].count("undo") == 1
    page.driver.refresh()
    page.until(lambda: page.text("count") == "4 of 6 rated")


def test_what_was_rated_without_a_server_outlives_the_page(page, command):
    command.kill()
    page.press("2")
    page.until(lambda: page.state() == "waiting")
    page.driver.get("about:blank")
    command.start()
    again = Page(page.driver, command)
    again.saved()
    assert command.rated == [("c0", "okay")]


def test_a_rating_is_shown_as_saved_only_after_the_answer(page, command):
    os.kill(command.process.pid, signal.SIGSTOP)
    try:
        page.press("1", Keys.ARROW_LEFT)
        page.choose("filter-rating", "")
        page.press(Keys.ARROW_LEFT)
        assert (page.state(), page.shown, page.text("rating")) == ("saving", "c0", "love …")
    finally:
        os.kill(command.process.pid, signal.SIGCONT)
    page.saved()
    assert page.text("rating") == "love ✓"


def shown_pair(page):
    script = "return ['left', 'right'].map((id) => document.getElementById(id).firstElementChild.dataset.name)"
    return page.driver.execute_script(script)


def test_pairs_are_compared_by_keys_and_become_strengths(page, command):
    page.press("p")
    winners = {Keys.ARROW_LEFT: "left", Keys.ARROW_RIGHT: "right", "=": "equal"}
    seen = []
    for key in winners:
        page.until(lambda: page.driver.execute_script("return pair?.length === 2"))
        seen.append(shown_pair(page))
        page.press(key)
    page.until(lambda: page.driver.execute_script("return pair?.length === 2"))
    page.press("u")
    assert shown_pair(page) == seen[-1]
    page.saved()
    pairs = [line for line in command.lines if line["kind"] == "pair"]
    assert [[line["left"], line["right"]] for line in pairs] == seen
    assert [line["winner"] for line in pairs] == list(winners.values())
    assert len({name for pair in seen for name in pair}) == 6
    assert page.text("count") == "2 pairs compared"
    page.press("p")
    page.driver.execute_script(f"current = '{seen[0][0]}'; show()")
    assert "strength +" in page.text("about")


def test_nothing_is_loaded_from_elsewhere_and_the_console_is_quiet(page, command):
    page.driver.get_log("browser")
    page.press("1", "i", "p")
    page.saved()
    script = "return performance.getEntriesByType('resource').map((entry) => entry.name)"
    assert all(name.startswith(f"http://127.0.0.1:{command.port}/") for name in page.driver.execute_script(script))
    assert page.driver.get_log("browser") == []


def test_a_phone_shows_the_whole_painting_and_every_button(page):
    from bench.pages import resize

    resize(page.driver, 360, 640, 2.0, True)
    try:
        script = """return [...document.querySelectorAll('#painting, footer button, header button')]
          .filter((e) => e.checkVisibility()).map((e) => e.getBoundingClientRect())
          .every((r) => r.left >= 0 && r.top >= 0 && r.right <= innerWidth && r.bottom <= innerHeight)
          && document.documentElement.scrollWidth <= innerWidth"""
        assert page.driver.execute_script(script)
        assert page.driver.execute_script("return document.getElementById('painting').clientWidth") > 250
    finally:
        resize(page.driver, 1200, 800)
