"""A tokenizer for JavaScript (ECMAScript 2025, scripts), for looking at sketches without running them.

Tells strings, template literals, regular expressions, comments, numbers, names and punctuators apart; a slash is read
as a division or as a regular expression by the token before it (after `)` and `}`: by what the bracket belongs to).
Never raises: whatever is no JavaScript becomes a token of kind `invalid`, and `fault` names the first literal or
bracket that never closes. Leaves out the grammar, `-->` comments, and the escape rules inside literals.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from typing import NamedTuple

CLOSERS = {"(": ")", "[": "]", "{": "}", "${": "}"}
# After these a slash starts a regular expression; after every other name it divides.
_BEFORE_OPERAND = {
    *("await", "case", "delete", "do", "else", "extends", "in"),
    *("instanceof", "new", "return", "throw", "typeof", "void", "yield"),
}
_HEADS = ("if", "for", "while", "with")
_END = r"\n\r\u2028\u2029"
_PART = r"[$\u200c\u200d]|\\u[0-9a-fA-F]{4}|\\u\{[0-9a-fA-F]+\}"
_TOKEN = re.compile(
    rf"""
    (?P<space>[\s\ufeff]++)
  | (?P<comment>(?://|<!--)[^{_END}]*+ | /\*(?:[^*]|\*(?!/))*+(?P<comment_end>\*/)?)
  | (?P<name>\#?(?:[^\W\d]|{_PART})(?:\w|{_PART})*+)
  | (?P<number>0[xX][\da-fA-F_]++n? | 0[bB][01_]++n? | 0[oO][0-7_]++n?
      | (?:\d[\d_]*+n | (?:\d[\d_]*+\.?[\d_]*+ | \.\d[\d_]*+)(?:[eE][+-]?\d[\d_]*+)?))
  | (?P<string>"(?:[^"\\\n\r]|\\(?:\r\n|[\s\S]|\Z))*+(?P<double_end>")?
      | '(?:[^'\\\n\r]|\\(?:\r\n|[\s\S]|\Z))*+(?P<single_end>')?)
  | (?P<punctuator>\.\.\.|=>|>>>=|\*\*=|<<=|>>=|>>>|===|!==|&&=|\|\|=|\?\?=|\?\.(?!\d)
      | \*\*|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||\?\?|[-+*/%&|^]=|[-+*/%&|^~!<>=?:;,.(){{}}\[\]@])
    """,
    re.VERBOSE,
)
_REGEX = re.compile(
    rf"/(?:[^\\/\[{_END}]|\\(?:[^{_END}]|\Z)|\[(?:[^\]\\{_END}]|\\(?:[^{_END}]|\Z))*+(?:\]|(?=[{_END}]|$)))++(?P<end>/\w*+)?"
)
_TEMPLATE = re.compile(r"[`}](?:[^`\\$]|\\(?:[\s\S]|\Z)|\$(?!\{))*+(?P<end>`|\$\{)?")
_LINE_END = re.compile(r"\r\n|[\n\r\u2028\u2029]")
_ESCAPE = re.compile(r"\\(?:u\{([0-9a-fA-F]+)\}|u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|\r\n|([\s\S]))")


class Token(NamedTuple):
    """kind: `name` (keywords and #private names too), `number`, `string`, `template` (a chunk between backtick, `${`
    and `}`), `regex`, `comment`, `punctuator` or `invalid`. text: as it stands in the source. line: 1-based. offset:
    characters from the start. closed: False for a literal or comment that never ends."""

    kind: str
    text: str
    line: int
    offset: int
    closed: bool = True

    @property
    def value(self) -> str:
        """The text with its escapes resolved (of a string or template: with its quotes)."""
        return _ESCAPE.sub(_unescape, self.text) if "\\" in self.text else self.text


@dataclass(frozen=True)
class Fault:
    """The first thing that cannot be whole JavaScript. at_end: it is whole but for a missing end of the source."""

    detail: str
    line: int
    at_end: bool


def _unescape(match: re.Match[str]) -> str:
    code = match[1] or match[2] or match[3]
    if code:
        return chr(min(int(code, 16), 0x10FFFF))
    return {"n": "\n", "t": "\t", "\n": ""}.get(match[4] or "", match[4] or "")


def tokenize(source: str) -> list[Token]:
    """All tokens of `source` in order, comments included, white space left out. Linear in the length; never raises."""
    starts = [0, *(match.end() for match in _LINE_END.finditer(source))]
    tokens: list[Token] = []
    reader = _Reader()
    position, size = 0, len(source)
    while position < size:
        kind, end, closed = _next(source, position, reader)
        if kind != "space":
            token = Token(kind, source[position:end], bisect_right(starts, position), position, closed)
            tokens.append(token)
            if kind != "comment":
                reader.take(token)
        position = end
    return tokens


def _next(source: str, position: int, reader: _Reader) -> tuple[str, int, bool]:
    """Kind, end and closedness of the token at `position`."""
    character = source[position]
    if character == "`" or (character == "}" and reader.in_template()):
        match = _TEMPLATE.match(source, position)
        assert match is not None  # its first character alone matches
        return "template", match.end(), match["end"] is not None
    match = _TOKEN.match(source, position)
    if match is None:
        return "invalid", position + 1, True
    kind = match.lastgroup or "invalid"
    if match["comment"]:
        return "comment", match.end(), match["comment_end"] is not None or match["comment"][1] != "*"
    if match["string"]:
        return "string", match.end(), (match["double_end"] or match["single_end"]) is not None
    if character == "/" and not reader.operand:
        regex = _REGEX.match(source, position)
        if regex is not None:
            return "regex", regex.end(), regex["end"] is not None
    return kind, match.end(), True


class _Reader:
    """What the tokenizer remembers: the open brackets, and whether an operand has just ended."""

    def __init__(self) -> None:
        # Each: (opening text, whether the code between is a block, whether an operand ends with its closer).
        self.open: list[tuple[str, bool, bool]] = []
        self.operand = False  # True: a slash now divides
        self.last = ";"  # text of the last token, "" for a literal
        self.before = ""  # text of the one before it

    def in_template(self) -> bool:
        return bool(self.open) and self.open[-1][0] == "${"

    def take(self, token: Token) -> None:
        text = token.text if token.kind in ("name", "punctuator") else ""
        if token.kind == "template":
            if token.text[0] == "}" and self.in_template():
                self.open.pop()
            self.operand = not token.text.endswith("${")
            if not self.operand:
                self.open.append(("${", False, True))
        elif token.kind == "name":
            loops_over = text == "of" and self.operand
            self.operand = self.last in (".", "?.") or not (text in _BEFORE_OPERAND or loops_over)
        elif text in ("(", "["):
            head = self.before if self.last == "await" else self.last
            self.open.append((text, False, text == "[" or head not in _HEADS or self.before in (".", "?.")))
            self.operand = False
        elif text == "{":
            block = self._starts_block()
            self.open.append((text, block, not block))
            self.operand = False
        elif text in (")", "]", "}"):
            self.operand = self.open.pop()[2] if self.open else text != "}"
        elif text not in ("++", "--"):  # these are postfix after an operand and prefix before one: nothing changes
            self.operand = token.kind not in ("punctuator", "invalid")
        self.before, self.last = self.last, text

    def _starts_block(self) -> bool:
        """Whether `{` opens statements or a class body rather than an object literal."""
        if self.last in (";", ")", "=>", "{"):
            return True
        if self.last == "}":
            return not self.operand
        if self.last == ":":  # a label or a case, unless inside an object literal, parentheses or brackets
            return not self.open or self.open[-1][1]
        if self.last and (self.last[0].isalnum() or self.last[0] in "_$#\\"):
            return self.last not in _BEFORE_OPERAND - {"do", "else"} or self.before in (".", "?.")
        return False


def fault(tokens: list[Token]) -> Fault | None:
    """The first literal, comment or bracket that never closes, or None. A bracket that is closed by another kind, or
    never opened, is a fault that no further text can mend; so is a string that ends at the end of its line."""
    stack: list[tuple[str, int]] = []
    for token in tokens:
        if not token.closed:
            what = {"regex": "regular expression", "template": "template literal"}.get(token.kind, token.kind)
            return Fault(f"this {what} never ends", token.line, token is tokens[-1])
        if token.kind == "template":
            if token.text[0] == "}":
                stack.pop()
            if token.text.endswith("${"):
                stack.append(("${", token.line))
        elif token.kind == "punctuator" and token.text in CLOSERS:
            stack.append((token.text, token.line))
        elif token.kind == "punctuator" and token.text in CLOSERS.values():
            if not stack:
                return Fault(f"`{token.text}` closes nothing", token.line, False)
            opener, line = stack.pop()
            if CLOSERS[opener] != token.text:
                return Fault(f"`{token.text}` where `{opener}` of line {line} is open", token.line, False)
    if stack:
        opener, line = stack[0]
        return Fault(f"`{opener}` never closes", line, True)
    return None
