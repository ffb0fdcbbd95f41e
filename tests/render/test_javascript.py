"""The tokenizer against acorn (a full parser that p5 brings along), and on input that is no JavaScript at all."""

from __future__ import annotations

import json
import random
import re
import subprocess
import time
from pathlib import Path

import pytest
from corpus import HONEST

from render.javascript import fault, tokenize

STUDIO = Path(__file__).parents[2] / "render" / "studio"
LIBRARIES = ("p5.brush/dist/p5.brush.js", "acorn/dist/acorn.js", "escodegen/escodegen.js", "libtess/libtess.min.js")
# Reads a list of sources, answers with the [kind, start, line, length] of names, numbers, strings and regexes of each.
ACORN = """
const { parse } = require("acorn");
const kinds = { num: "number", string: "string", regexp: "regex", privateId: "name" };
const answers = JSON.parse(require("fs").readFileSync(0)).map((source) => {
  const found = [];
  const onToken = (token) => {
    const { label, keyword } = token.type;
    const kind = kinds[label] ?? (keyword || label === "name" ? "name" : null);
    if (kind) found.push([kind, token.start, token.loc.start.line, token.end - token.start]);
  };
  parse(source, { ecmaVersion: "latest", locations: true, onToken });
  return found;
});
process.stdout.write(JSON.stringify(answers));
"""
SLASHES = [
    "a / b / c",
    "a = /b/ / /c/g",
    "(a) / b / c; [a] / b / c; `a` / b / c; 'a' / 2 / 1; 1 / 2 / 3; 1. / 2 / 3",
    "if (a) /b/.test(c); while (a) /b'/.test(c); for (;;) /b/.test(c)",
    "for (const a of /b/g) c; for (const a in /b/) c",
    "async () => { for await (const a of b) /c'/.test(a); await /b'/; }",
    "const of = 8; of / 2 / 1; a.of / 2 / 1",
    "{ a } /b'/.test(c)",
    "a = { b: 1 } / 2 / 1",
    "({ a: { b: 1 } / 2 / 1 })",
    "a = b ? { c: 1 } / 2 / 1 : /'/",
    "switch (a) { case /b'/.c: { d } /e'/; default: /f'/ }",
    "function a() { return /b'/ } /c'/.test(d)",
    "function* a() { yield /b'/ }",
    "() => { return {} / 2 / 1 }",
    "const f = () => {}\n/a'/.test(b)",
    "class A { static { /a'/ } b() {} } /c'/.test(d)",
    "class A extends B { #c = 1; d() { return this.#c / 2 / 1 } }",
    "a++ / 2 / 1; a-- / 2 / 1; b = -/c'/; !/d'/",
    "a.return / 2 / 1; a.if(b) / 2 / 1; a?.b / 2 / 1",
    "typeof /a'/; void /a'/; delete /a'/.b; a in /b'/; a instanceof /b'/.c",
    "do /a'/.test(b); while (c)\nif (d) {} else /e'/.test(f)",
    "a = /[/'\"`]/; b = /\\//; c = /[\\]/]/; d = /(?:[^/]|\\/)+/gi; e = /=a/; f = /[[a-z]--[b]]/v",
    "`${`${{ a: '}' }.a}`}/${a / b / c}` / 2 / 1",
    "`a$b${c}$${d}\\${e}\\``",
    "x = a ? .5 : .2; y = a?.b; z = a ?.3 : 1",
    "a\n++b\n/c/d",
    "label: { } /a'/.test(b)",
    "x = function () {}\ny = a / b / c",
    "/* ' */ a /* / */ / b // ' /",
    "a = 'b\\\n c'; d = \"\\\"'\"; e = '\\\\'",
    "var \\u0061b = 1, ünïcode = 2, $_ = 3, \\u{62}c = 4; ab / ünïcode / $_",
    "0xFF + 0b1_0 + 0o17 + 10n + 1_000.5e-3 + .5E+2 + 1..toFixed() + 017",
    "a\u2028/b/c; d = 1\u2029/e/f",
    "a ??= b; c ||= /d'/; e &&= f / g / h; i **= 2; j >>>= 1; k = l >>> 2 ** 3",
]


def acorn(sources: list[str]) -> list[list[list]]:
    run = subprocess.run(["node", "-e", ACORN], cwd=STUDIO, input=json.dumps(sources), capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[-2000:]
    return json.loads(run.stdout)


def ours(source: str) -> list[list]:
    kinds = ("name", "number", "string", "regex")
    return [
        [token.kind, token.offset, token.line, len(token.text)] for token in tokenize(source) if token.kind in kinds
    ]


def test_reads_what_acorn_reads() -> None:
    texts = [(STUDIO / "node_modules" / name).read_text() for name in LIBRARIES]
    libraries = [re.sub("[\U00010000-\U0010ffff]", "x", text) for text in texts]  # acorn counts them as two
    sources = SLASHES + [source for _, source in HONEST] + libraries
    for source, expected in zip(sources, acorn(sources), strict=True):
        found = ours(source)
        differences = [pair for pair in zip(found, expected, strict=False) if pair[0] != pair[1]]
        assert not differences, (source[:80], source[differences[0][0][1] - 40 :][:80], differences[0])
        assert len(found) == len(expected), source[:80]
        assert fault(tokenize(source)) is None, source[:80]


@pytest.mark.parametrize(
    ("source", "line", "at_end"),
    [
        ("a(\n[1,\n2]", 1, True),
        ("a = 'b\nc", 1, False),
        ('a\n = "b', 2, True),
        ("a\n/* b\n c", 2, True),
        ("`a\n${b} c", 2, True),
        ("`a${\n(b}", 2, False),
        ("a)\n", 1, False),
        ("(\n]", 2, False),
        ("`${", 1, True),
        ("a = /b[/]", 1, True),
        ("a = /b[/]\nc", 1, False),
        ("{ '}'\n", 1, True),
    ],
)
def test_names_the_first_thing_that_never_closes(source: str, line: int, at_end: bool) -> None:
    found = fault(tokenize(source))
    assert found is not None
    assert (found.line, found.at_end) == (line, at_end), found


def test_no_beginning_of_a_whole_source_is_beyond_mending() -> None:
    for _, source in HONEST:
        for end in range(0, len(source), 3):
            found = fault(tokenize(source[:end]))
            assert found is None or found.at_end, (source[:end][-60:], found)


def test_any_text_comes_back_whole() -> None:
    pieces = [
        *"(){}[]`'\"/\\$#@;.,=<>!?:+-*%&|^~",
        "${",
        "//",
        "/*",
        "*/",
        "\n",
        "\r\n",
        "\u2028",
        " ",
        "a",
        "if",
        "of",
    ]
    pieces += ["return", "\\u0061", "\\u{", "0x", "1e", "ü", "🌺", "\x00", "\ufeff", "=>", "?.", "..."]
    chance = random.Random(5)
    for _ in range(3000):
        source = "".join(chance.choices(pieces, k=chance.randint(1, 40)))
        end = 0
        for token in tokenize(source):
            assert token.text
            assert source.startswith(token.text, token.offset)
            assert not source[end : token.offset].strip("\ufeff \r\n\u2028"), (source, token)
            ends = re.findall("\r\n|[\r\n\u2028\u2029]", source[: token.offset])
            assert token.line == 1 + len(ends), (source, token)
            end = token.offset + len(token.text)
        assert not source[end:].strip("\ufeff \r\n\u2028"), source
        fault(tokenize(source))


@pytest.mark.parametrize("piece", ["(", "`${", "/[", "/", "\\", "'", '"\\', "/*", "`", "a/", "}", "a.", "$", "\\u0061"])
def test_long_garbage_is_read_in_linear_time(piece: str) -> None:
    started = time.process_time()
    tokens = tokenize(piece * 200_000)
    fault(tokens)
    assert time.process_time() - started < 30
    assert tokens
