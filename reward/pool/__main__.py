"""python -m reward.pool generate|rate|build|check: the pool studio, from the first sketch to a pool that is checked.

generate WORKSHOP --writer MODEL@WHERE   models write sketches, a critic speaks, the farm paints
rate FOLDER                              a page on this machine to rate paintings or compare two
build WORKSHOP -o POOL                   a pool in the public layout out of what was rated
check POOL                               format, licences, duplicates, spread, difficulty
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from types import ModuleType

from render.errors import exit_code
from reward.pool import build, check, generate, rate

COMMANDS: dict[str, ModuleType] = {"generate": generate, "rate": rate, "build": build, "check": check}


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser("python -m reward.pool", description="The pool studio.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="generate|rate|build|check")
    for name, module in COMMANDS.items():
        text = (module.__doc__ or "").partition(": ")[2]
        about, _, rest = text.partition("\n\n")
        command = commands.add_parser(
            name,
            help=about.strip(),
            description=about[:1].upper() + about[1:],
            epilog=rest,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.add_arguments(command)
    arguments = parser.parse_args(argv)
    return exit_code(
        lambda: COMMANDS[arguments.command].run(arguments),
        "stopped; what was done is kept, and the same command goes on",
    )


if __name__ == "__main__":
    sys.exit(main())
