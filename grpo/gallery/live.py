"""What paints a sketch again in the viewer's own browser: p5, p5.brush and the sealed page, as texts inside scripts.

The page puts these texts into a sandboxed frame of its own. A frame from disk may load no file, so they come inline;
the gallery's policy names each of them by its hash and allows no other inline script. The libraries are copied out of
render/studio at build time, with their licences; they are in no repository of ours.
"""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from render.serve import KNOWN_BRUSH, LIBRARIES, MASK_MODULE, PAGE_SCRIPTS, STUDIO, parameters, read_api, scope
from render.settings import RenderSettings

PAGE = Path(__file__).parent / "page"
SKETCH = '"/sketch.js"'  # where the farm's page loads the sketch from; the live page has it in memory
LICENCES = {
    "LICENCE-p5.txt": STUDIO / "node_modules/p5/license.txt",
    "LICENCE-p5.brush.md": STUDIO / "node_modules/p5.brush/LICENSE.md",
}
ABOUT = """\
These files paint a sketch again in the viewer's browser. They were copied here when the gallery was built:

p5.js     p5 {p5}, https://p5js.org, GNU Lesser General Public License 2.1 (LICENCE-p5.txt)
brush.js  p5.brush {brush}, https://github.com/acamposuribe/p5.brush, MIT licence (LICENCE-p5.brush.md)
page.js   the sealed page of this project, MIT licence

The text of each library is unchanged and stands as one string in its file; another version of it may be put there (the
hash in index.html then has to be changed too). Without this folder the gallery works, but for the button.
"""


@dataclass(frozen=True)
class Live:
    """files: name -> bytes for the folder studio/. hashes: of the scripts that the frame runs. why: where there are
    none, why not."""

    files: dict[str, bytes] = field(default_factory=dict)
    hashes: tuple[str, ...] = ()
    why: str = ""


def live_studio() -> Live:
    """The studio's texts, or why they are not to be had."""
    for path in (*LIBRARIES.values(), MASK_MODULE):
        if not path.is_file():
            return Live(why=f"{path.name} was not installed where this gallery was built")
    texts = {name: _inline((STUDIO / name).read_text(encoding="utf-8")) for name in PAGE_SCRIPTS}
    if SKETCH not in texts["harness.js"]:
        return Live(why="the studio's page loads its sketch in a way that this gallery does not know")
    texts["harness.js"] = texts["harness.js"].replace(SKETCH, "studio.sketch")
    p5, brush = (_inline(path.read_text(encoding="utf-8")) for path in LIBRARIES.values())
    module = base64.b64encode(MASK_MODULE.read_bytes()).decode()
    before, after = (
        _inline((PAGE / name).read_text(encoding="utf-8")) for name in ("frame_before.js", "frame_after.js")
    )
    scripts = [
        before,
        texts["first.js"],
        f'studio.maskModule = "{module}";',
        texts["mask.js"],
        "p5",
        "brush",
        *(texts[name] for name in ("blend.js", "seal.js", "harness.js")),
        after,
    ]
    page: dict[str, Any] = {"scripts": scripts, "api": read_api(), **wrapper()}
    libraries = {"p5": p5, "brush": brush}
    files = {
        "page.js": _put("page", page),
        "p5.js": _put("p5", p5),
        "brush.js": _put("brush", brush),
        "README.txt": ABOUT.format(p5=_version("p5"), brush=_version("p5.brush")).encode(),
        **{name: path.read_bytes() for name, path in LICENCES.items() if path.is_file()},
    }
    return Live(files, tuple(_hash(libraries.get(text, text)) for text in scripts))


def wrapper() -> dict[str, Any]:
    """The sealed scope around a sketch, as render.serve has it."""
    names = parameters(read_api())
    head, tail = scope(names)
    return {"parameters": names, "head": head, "tail": tail}


def live_settings(settings: RenderSettings) -> dict[str, Any]:
    """What the live page needs of a run's settings."""
    brush = LIBRARIES["/p5.brush.js"]
    known = brush.is_file() and hashlib.sha256(brush.read_bytes()).hexdigest() == KNOWN_BRUSH
    return {
        "methods": settings.methods,
        "max_side": settings.max_side,
        "seed": settings.seed,
        "patches": [patch for patch in settings.patches() if known or patch != "mask"],
    }


def _inline(text: str) -> str:
    """As it stands inside a script element: one kind of line end, nothing that would close the element."""
    return text.replace("\r\n", "\n").replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _put(name: str, value: Any) -> bytes:
    return f'gallery.put("studio", "{name}", {json.dumps(value)});\n'.encode()


def _version(package: str) -> str:
    return str(json.loads((STUDIO / "node_modules" / package / "package.json").read_text(encoding="utf-8"))["version"])
