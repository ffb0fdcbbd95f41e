import signal

import pytest

# Processes that a shell starts in the background ignore SIGINT, and so would all that a test starts. A handler of our
# own does not go over to them: they begin with the default.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Modules whose tests are real runs of half a minute or more.
LONG = {
    *("test_run.py", "test_ranks.py", "test_judge_led.py", "test_outage.py", "test_paint.py", "test_control.py"),
    "test_farm.py",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Those first, so that no worker is left alone with one at the end."""
    items.sort(key=lambda item: item.path.name not in LONG)
