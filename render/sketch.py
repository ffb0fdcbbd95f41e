"""Find the sketch in a model's reply, and look at it without running it.

`find_sketch` reads Markdown fences, HTML pages and bare code, after a closed think block or inside one that never
closes. `look` works on tokens, never on raw text, and may only refuse what the page (render/studio) would refuse too:
where the source could be doing something that the look cannot follow, it says nothing and the page decides. So a
refused name counts only where it is certain to be called before any pigment can be down. Leaves out: canvas size,
everything that depends on values, and whatever stands behind a condition, a loop, a call or an alias.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from render.javascript import CLOSERS, Token, fault, tokenize
from render.painting import REJECTIONS


@dataclass(frozen=True)
class Refusal:
    """reason: a key of REJECTIONS. detail: one line for a person. line: of the sketch, from 1, where known."""

    reason: str
    detail: str
    line: int | None = None


@dataclass(frozen=True)
class Sketch:
    """What was found in a reply. source: the JavaScript, or None where `refusal` (`no_sketch`) says what is missing.
    line: the line of the reply, from 1, at which the source begins."""

    source: str | None
    line: int | None = None
    refusal: Refusal | None = None


# ------------------------------------------------------------------------------------------------ finding the sketch

_OPENING = re.compile(r"[ \t>]*(?P<fence>`{3,}|~{3,})(?P<space>[ \t]*)(?P<language>[\w.+#-]*)(?P<rest>.*)$")
_CLOSING_BEHIND_CODE = re.compile(r"(?P<code>.*[;})])[ \t]*`{3,}[ \t]*$")
_SCRIPT = re.compile(r"<script\b(?P<attributes>[^>]*)>(?P<code>.*?)(?:</script\s*>|\Z)", re.IGNORECASE | re.DOTALL)
_HTML_LINE = re.compile(r"^\s*<(?:!doctype|html|head|body|script|!--)", re.IGNORECASE | re.MULTILINE)
_THOUGHT_END = re.compile(r"</think\s*>", re.IGNORECASE)
_CODE_BEGINS = re.compile(
    r"""\s*(?://|/\*|(?:async\s+)?function\b[\s*]*[\w$]*\s*\(|class\s+[\w$]+[^;]*\{|['"]use\ strict['"]
        |(?:let|const|var)\s+(?:[{\[]|[\w$]+\s*(?:[=;,]|$))|[\w$.\[\]]+\s*=[^=]|[\w$.]+\(.*[;{)\]]\s*$)""",
    re.VERBOSE,
)
_CODE_ENDS = re.compile(r".*[;{}()\[\],]\s*(?://.*)?$|\s*(?://|/\*|\*)|\s*$")
_LANGUAGES = ("", "js", "javascript", "mjs", "jsx", "ts", "typescript", "p5", "p5js", "p5.js", "html")


@dataclass
class _Block:
    language: str
    lines: list[str]
    line: int

    @property
    def source(self) -> str:
        """The code; of an HTML page, its inline scripts joined in order."""
        text = "\n".join(self.lines)
        if not _HTML_LINE.match(text):
            return text
        return "\n".join(match["code"] for match in _SCRIPT.finditer(text) if match["code"].strip())


def find_sketch(reply: str) -> Sketch:
    """The sketch in `reply`.

    A fence that never closes counts: its sketch was cut off, or only the fence is missing; `look` tells the two apart.
    Of several fenced blocks the last that binds `setup` is taken, else the last in a language a sketch may have.
    After a closed think block only what follows it is the answer. Of an HTML page the inline scripts are taken.
    """
    reply = reply.replace("\r\n", "\n")
    thoughts = list(_THOUGHT_END.finditer(reply))
    begin = thoughts[-1].end() if thoughts else 0
    answer = reply[begin:]
    blocks = [block for block in _fenced(answer) or _bare(answer) if block.source.strip()]
    spoken = [block for block in blocks if block.language.lower() in _LANGUAGES]
    candidates = (
        [block for block in spoken if _binds_setup(block.source)]
        or [block for block in blocks if _binds_setup(block.source)]
        or spoken
    )
    if candidates:
        return Sketch(candidates[-1].source, reply.count("\n", 0, begin) + candidates[-1].line)
    where = ""
    if blocks:
        where = f": its only code is `{blocks[-1].language}`"
    elif thoughts and _fenced(reply[:begin]):
        where = ": code stands only inside the think block"
    return Sketch(None, refusal=Refusal("no_sketch", REJECTIONS["no_sketch"] + where))


def _fenced(text: str) -> list[_Block]:
    """The fenced blocks of a Markdown text; the last may lack its closing fence."""
    blocks: list[_Block] = []
    fence = ""  # of the block being read, "" outside of one
    for number, line in enumerate(text.split("\n"), start=1):
        mark = _OPENING.match(line)
        bare = mark is not None and not mark["language"] + mark["rest"].strip()
        if mark and fence and mark["fence"].startswith(fence) and (bare or (fence == "```" and mark["space"])):
            fence = ""
        elif mark and (not fence or (fence == mark["fence"] == "```" and mark["language"])):
            fence = mark["fence"]
            blocks.append(_Block(mark["language"], [], number + 1))
            if "(" in mark["rest"]:  # code on the line of the fence itself
                known = mark["language"].lower() in _LANGUAGES
                code = mark["rest"] if known else mark["language"] + mark["rest"]
                blocks[-1] = _Block(mark["language"] if known else "", [code.rstrip().removesuffix(fence)], number)
                fence = "" if code.rstrip().endswith(fence) else fence
        elif fence:
            behind = _CLOSING_BEHIND_CODE.match(line) if fence[0] == "`" else None
            blocks[-1].lines.append(behind["code"] if behind else line)
            fence = "" if behind else fence
    return blocks


def _bare(text: str) -> list[_Block]:
    """A reply without fences: an HTML page, or the code between the prose before it and the prose after it."""
    lines = text.split("\n")
    for index, line in enumerate(lines):
        if _HTML_LINE.match(line):
            return [_Block("html", lines[index:], index + 1)]
        if _CODE_BEGINS.match(line):
            first = index
            break
    else:
        return []
    if not any(token.text in ("setup", "draw", "createCanvas", "brush") for token in tokenize(text)):
        return []
    last = len(lines)
    while last > first and not (lines[last - 1].strip() and _CODE_ENDS.match(lines[last - 1])):
        last -= 1
    whole = fault(tokenize("\n".join(lines[first:last]))) is None
    return [_Block("", lines[first:last] if whole else lines[first:], first + 1)]


def _binds_setup(source: str) -> bool:
    tokens = [Token("", "", 0, 0), *(token for token in tokenize(source) if token.kind != "comment")]
    return any(
        token.value == "setup" and (before.text in ("function", "*", "const", "let", "var") or after.text in ("=", ":"))
        for before, token, after in zip(tokens, tokens[1:], [*tokens[2:], tokens[0]], strict=False)
    )


# ------------------------------------------------------------------------------------------------ looking at it

# Methods of brush that change its state and lay no pigment.
_STATE_ONLY = {"scaleBrushes", "noStroke", "fill", "noFill", "fillBleed", "fillTexture", "beginShape", "vertex"}
# Where one of these stands, what follows may not run, or may run before pigment of someone else.
_FORKS = {
    *("if", "for", "while", "do", "switch", "try", "return", "throw", "await", "yield", "class", "import", "export"),
    *("break", "continue", "&&", "||", "??", "?", "?.", "&&=", "||=", "??=", "=>", "super"),
}
# What brush leaves undefined without an error, so that it can be shown and awaited.
_UNDEFINED = ("then", "toJSON", "constructor", "toString", "valueOf")
_OPERATORS = ("typeof", "void", "delete", "in", "instanceof", "of")


def look(source: str, methods: Collection[str] | str, api: Mapping[str, Any]) -> Refusal | None:
    """The first reason why the page is certain to refuse `source`, in the order of the gate, or None.

    methods: the names that exist on `brush`, or "all" (methods are then not checked). api: the table of
    render/studio/api.json: `p5.functions`, and `refused`, a list of names for each reason. Never raises on any source.
    """
    tokens = tokenize(source)
    broken = fault(tokens)
    if broken is not None:
        return Refusal("truncated" if broken.at_end else "syntax_error", broken.detail, broken.line)
    code = _Code([token for token in tokens if token.kind != "comment"])
    return _no_setup(code) or _not_webgl(code) or _Walk(code, methods, api).refusal() or _no_painting(code)


class _Code:
    """Whole tokens without comments: partner of each bracket, depth, and where each name stands."""

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.partner: dict[int, int] = {}  # opener -> closer, by index of the token
        self.depth: list[int] = []
        self.names: dict[str, list[int]] = {}
        self._global: dict[str, bool] = {}
        self.strings = "\n".join(token.value for token in tokens if token.kind in ("string", "template"))
        stack: list[int] = []
        for index, token in enumerate(tokens):
            if token.kind == "template" and token.text[0] == "}":
                self.partner[stack.pop()] = index
            if token.kind == "punctuator" and token.text in CLOSERS.values():
                self.partner[stack.pop()] = index
            self.depth.append(len(stack))
            if token.kind == "name":
                self.names.setdefault(token.value, []).append(index)
            if self.text(index) in CLOSERS or (token.kind == "template" and token.text.endswith("${")):
                stack.append(index)

    def text(self, index: int) -> str:
        """The name or punctuator at `index`; empty for a literal and outside the source."""
        if not 0 <= index < len(self.tokens):
            return ""
        token = self.tokens[index]
        return token.value if token.kind in ("name", "punctuator") else ""

    def line(self, index: int) -> int:
        return self.tokens[index].line

    def after_dot(self, index: int) -> bool:
        return self.text(index - 1) in (".", "?.")

    def calls(self, index: int) -> bool:
        """Whether the name at `index` is called, rather than declared as a function or method."""
        return (
            self.text(index + 1) == "("
            and self.text(index - 1) not in ("function", "*", "get", "set", "async", "static")
            and self.text(self.partner[index + 1] + 1) not in ("{", "=>")
        )

    def is_global(self, name: str) -> bool:
        """Whether `name` must mean the page's own, because each place where it stands can only be a use of it: no
        declaration, parameter or assignment looks like that."""
        if name not in self._global:
            self._global[name] = all(self._only_uses(index) for index in self.names.get(name, ()))
        return self._global[name]

    def _only_uses(self, index: int) -> bool:
        after = self.text(index + 1)
        if self.after_dot(index):
            return after != "="
        if after == "(":
            return self.calls(index)
        return after in (":", ".", "?.", "[") or (self.text(index - 1) == "=" and after not in ("=", "=>"))

    def body(self, name: str) -> tuple[int, int] | None:
        """First and last index of the body of the top-level function `name`, if nothing else could bind the name."""
        places = self.names.get(name, [])
        if len(places) != 1:
            return None
        at = places[0]
        shape = [self.text(at + step) for step in (-1, 1, 2, 3)]
        if shape != ["function", "(", ")", "{"] or self.depth[at]:
            return None
        before = at - 3 if self.text(at - 2) == "async" else at - 2
        statement = self.text(before) in ("", ";", "}") or (
            self.text(before) in (")", "]") and self.line(before) < self.line(at)
        )
        return (at + 4, self.partner[at + 3]) if statement else None


def _no_setup(code: _Code) -> Refusal | None:
    bodies = []  # of classes: what they hold is no global function
    for index in code.names.get("class", ()):
        brace = next((at for at in range(index, len(code.tokens)) if code.text(at) == "{"), None)
        if brace is not None and not code.after_dot(index):
            bodies.append((brace, code.partner[brace]))
    for index in code.names.get("setup", ()):
        if code.after_dot(index):
            bound = code.text(index + 1) == "="
        else:
            bound = not code.calls(index) and not any(first < index < last for first, last in bodies)
        if bound:
            return None
    return Refusal("no_setup", REJECTIONS["no_setup"])


def _not_webgl(code: _Code) -> Refusal | None:
    if "webgl" in code.strings.lower() or any("webgl" in name.lower() for name in code.names):
        return None
    places = code.names.get("createCanvas", [])
    if not places:
        line = code.line(code.names["setup"][0]) if "setup" in code.names else None
        return Refusal("not_webgl", "the sketch never calls createCanvas(width, height, WEBGL)", line)
    if all(code.calls(index) and _renderer_is_literal(code, index + 1) for index in places):
        return Refusal("not_webgl", "createCanvas is called without WEBGL", code.line(places[0]))
    return None


def _renderer_is_literal(code: _Code, opener: int) -> bool:
    """Whether the third argument of the call whose parenthesis is at `opener` is absent or plain to see."""
    commas = [opener]
    for index in range(opener + 1, code.partner[opener]):
        if code.text(index) in ("...", "="):
            return False
        if code.text(index) == "," and code.depth[index] == code.depth[opener] + 1:
            commas.append(index)
    if len(commas) < 3 or commas[2] + 1 == code.partner[opener]:
        return True
    third = commas[2] + 1
    known = code.tokens[third].kind in ("string", "number") or (
        code.text(third) == "P2D" and all(code.text(index + 1) in (")", ",") for index in code.names["P2D"])
    )
    return known and code.text(third + 1) in (")", ",")


def _no_painting(code: _Code) -> Refusal | None:
    for index in code.names.get("brush", ()):
        if code.text(index + 1) != "." or code.text(index + 2) not in _STATE_ONLY:
            return None
    return Refusal("no_painting", REJECTIONS["no_painting"])


class _Walk:
    """A walk along the tokens in the order in which they are evaluated, for as long as that order is certain and
    nothing that is passed can lay pigment: the top level, then the body of `setup`, then the body of `draw`."""

    def __init__(self, code: _Code, methods: Collection[str] | str, api: Mapping[str, Any]) -> None:
        self.code = code
        self.methods = methods
        self.harmless = set(api["p5"]["functions"]) - {"redraw"}
        # p5 itself stands in the table, but p5.Vector and p5.Color exist.
        exempt = {*api["p5"]["functions"], "p5"}
        self.reasons = {name: reason for reason, names in api["refused"].items() for name in set(names) - exempt}

    def refusal(self) -> Refusal | None:
        """The first refused use in the source that is certain to run, or None."""
        found = self._along(0, len(self.code.tokens))
        for name in ("setup", "draw"):
            if isinstance(found, Refusal):
                return found
            body = self.code.body(name)
            if body is None:
                return None
            found = self._along(*body)
            if found is False:  # pigment may be down before draw begins
                return None
        return found if isinstance(found, Refusal) else None

    def _along(self, index: int, end: int) -> Refusal | bool:
        """A refusal; or whether the walk reached `end`."""
        code = self.code
        while index < end:
            text, after_dot = code.text(index), code.after_dot(index)
            called = code.tokens[index].kind == "name" and code.text(index + 1) == "("
            refusal = None if after_dot else self._refused(index)
            if refusal is not None:
                return refusal
            if text == "function" and not after_dot:
                parenthesis = next((at for at in range(index, end) if code.text(at) == "("), end)
                body = code.partner.get(parenthesis, end) + 1
                index = code.partner.get(body, end) + 1
            elif text == "(" and code.text(code.partner[index] + 1) == "=>":
                body = code.partner[index] + 2
                if code.text(body) != "{":
                    return False
                index = code.partner[body] + 1
            elif called and (after_dot or text not in _OPERATORS):
                if not self._is_harmless(index):
                    return False
                index += 2
            elif self._forks(index):
                return False
            else:
                index += 1
        return True

    def _refused(self, index: int) -> Refusal | None:
        """The refusal that reading the name at `index` meets in the page; None where it need not be the page's."""
        code = self.code
        name, after = code.text(index), code.text(index + 1)
        if name in self.reasons and after != ":" and code.is_global(name):
            reason = self.reasons[name]
            return Refusal(reason, f"{REJECTIONS[reason]}: `{name}`", code.line(index))
        method = code.text(index + 2)
        known = self.methods == "all" or method in self.methods or method in _UNDEFINED
        if name != "brush" or after != "." or known or code.text(index + 3) == "=" or not code.is_global(name):
            return None
        near = get_close_matches(method, list(self.methods), n=1)
        meant = f"; did you mean `brush.{near[0]}`?" if near else ""
        return Refusal("unknown_method", f"`brush.{method}` does not exist{meant}", code.line(index))

    def _is_harmless(self, index: int) -> bool:
        """Whether the call of the name at `index` can lay no pigment."""
        code = self.code
        name = code.text(index)
        if not code.after_dot(index):
            return name in self.harmless and code.is_global(name)
        owner = code.text(index - 2)
        free = code.text(index - 1) == "." and not code.after_dot(index - 2) and code.is_global(owner)
        return free and (owner == "Math" or (owner == "brush" and name in _STATE_ONLY))

    def _forks(self, index: int) -> bool:
        """Whether what follows `index` may not run, or a value is called there that is not known."""
        code = self.code
        text, token = code.text(index), code.tokens[index]
        if code.after_dot(index):
            return False
        if text == "(" or (token.kind == "template" and token.text[0] == "`"):
            before = index - 1
            operand = before >= 0 and (code.tokens[before].kind != "punctuator" or code.text(before) in (")", "]", "}"))
            return operand and code.text(before) not in _OPERATORS
        return text in _FORKS or (text == "new" and code.text(index + 1) not in self.reasons)
