"""python -m grpo.gallery RUN... [-o FOLDER]: the gallery of one run (RUN/gallery) or of several (./gallery).

Open FOLDER/index.html in any browser, or put the folder on any web host. Called again, it adds what is new. References
of the judge whose painting is not at hand are painted once; without Chromium they are left out with a line.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from grpo.gallery import build
from grpo.stages import Stages
from render.errors import exit_code


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m grpo.gallery", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="a run folder, for instance runs/laptop")
    parser.add_argument(
        "-o", dest="out", type=Path, metavar="FOLDER", help="default: RUN/gallery, of several ./gallery"
    )
    arguments = parser.parse_args(argv)
    return exit_code(lambda: work(arguments), "stopped; the same command goes on")


def work(arguments: argparse.Namespace) -> int:
    console = Console(stderr=True)
    out = arguments.out or (arguments.runs[0] / "gallery" if len(arguments.runs) == 1 else Path("gallery"))

    def say(line: str) -> None:
        console.print(line, markup=False, highlight=False, soft_wrap=True)

    with Stages(console) as stages:
        index = build(arguments.runs, out, say, show=stages.show, paint_references=True)
    print(index.resolve().as_uri())
    return 0


if __name__ == "__main__":
    sys.exit(main())
