import hashlib
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from render.errors import SetupError, UserError
from reward import instruction
from reward.instruction import Instruction, keep, load_instruction, read_wheel

TEXTS = {"instruction": "\nLook closely. \nPrompt - {text_prompt}\n", "suffix": "\nNow: <|Reward|>\n"}
KEPT = Path(__file__).parents[2] / instruction.CACHE


@pytest.fixture
def known(monkeypatch):
    """Our own words in the place of the published ones."""
    sums = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in TEXTS.items()}
    monkeypatch.setattr(instruction, "SHA256", sums)


def wheel(path, **files):
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(f"scorer/{name}.py", content)
    return path


def test_the_published_text_is_kept_to_the_byte():
    if not (KEPT / "instruction.txt").is_file():
        pytest.skip(f"`{instruction.COMMAND}` has not been run; `make test` runs it")
    text = load_instruction(KEPT)
    assert text.fill("a {fox} in {{snow}}").count("a {fox} in {{snow}}") == 1
    assert text.fill("").count("<|Reward|>") == 1


def test_texts_are_found_in_a_wheel_by_their_sums_and_no_code_of_it_runs(tmp_path, known):
    files = {
        "first": f"raise SystemExit('imported')\ndef f():\n    TEXT = {TEXTS['instruction']!r}\n",
        "second": f"import nothing_like_this\nSUFFIX = {TEXTS['suffix']!r}\nNEARLY = {TEXTS['suffix'] + ' '!r}\n",
    }
    found = read_wheel(wheel(tmp_path / "a.whl", **files))
    assert found == TEXTS
    keep(found, tmp_path / "kept")
    assert load_instruction(tmp_path / "kept") == Instruction(TEXTS["instruction"], TEXTS["suffix"])


def test_line_endings_and_other_scripts_survive(tmp_path, monkeypatch):
    texts = {"instruction": "eins\r\nzwei \n画 {text_prompt}", "suffix": "\r\n"}
    sums = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in texts.items()}
    monkeypatch.setattr(instruction, "SHA256", sums)
    keep(texts, tmp_path)
    assert load_instruction(tmp_path).fill("{画}") == "eins\r\nzwei \n画 {画}\r\n"


def test_a_wheel_without_the_text_or_no_wheel_at_all_is_named(tmp_path, known):
    other = wheel(tmp_path / "b.whl", only=f"TEXT = {TEXTS['instruction']!r}")
    with pytest.raises(UserError, match=r"b\.whl is not the wheel of hpsv3==1.0.0: no string in it is the suffix"):
        read_wheel(other)
    (tmp_path / "c.whl").write_bytes(b"not a zip")
    with pytest.raises(UserError, match=r"c\.whl is not a wheel of hpsv3"):
        read_wheel(tmp_path / "c.whl")
    with pytest.raises(UserError, match=r"d\.whl cannot be read \(No such file"):
        read_wheel(tmp_path / "d.whl")


def test_a_missing_or_altered_text_says_what_to_run(tmp_path, known):
    with pytest.raises(SetupError, match=r"run `python -m reward\.instruction`, or .* WHEEL") as caught:
        load_instruction(tmp_path)
    assert "\n" not in str(caught.value)
    keep(TEXTS, tmp_path)
    (tmp_path / "suffix.txt").write_text(TEXTS["suffix"].strip())
    with pytest.raises(SetupError, match=r"suffix\.txt is not the suffix text .* run `python -m reward.instruction`"):
        load_instruction(tmp_path)


def test_a_download_that_fails_is_one_clear_line(tmp_path, monkeypatch, capsys):
    def offline(command, **options):
        assert command[-1] == instruction.PACKAGE
        assert "--no-deps" in command
        return subprocess.CompletedProcess(command, 1, "", "WARNING: Retrying\nERROR: No matching distribution found\n")

    monkeypatch.setattr(instruction.subprocess, "run", offline)
    assert instruction.main([]) == 2
    told = capsys.readouterr().err
    assert "could not download hpsv3==1.0.0 (ERROR: No matching distribution found)" in told
    assert "python -m reward.instruction WHEEL" in told
    assert len(told.splitlines()) == 1


def test_the_command_explains_itself():
    done = subprocess.run([sys.executable, "-m", "reward.instruction", "--help"], capture_output=True, text=True)
    assert done.returncode == 0
    assert "[WHEEL]" in done.stderr
