"""TOML -> frozen dataclasses, read strictly.

Each table of a file is one dataclass whose fields carry default, bounds and a line of documentation
(`render.settings.setting`). An unknown table or key, a wrong type or a broken bound ends in one line that names file,
table, key, what stands there and what is allowed. Which tables there are is the caller's: `grpo.config` reads all of a
run's, `reward.config` those that painting and scoring need.
"""

from __future__ import annotations

import difflib
import tomllib
import types
import typing
from collections.abc import Collection, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from pathlib import Path
from typing import Any

from render.errors import ConfigError


def read_toml(path: Path, overrides: Sequence[str] = ()) -> dict[str, Any]:
    """The tables of a file with `table.key=value` overrides applied. Raises ConfigError in one line."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"{path}: there is no such config file{_siblings(path)}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: not valid TOML: {error}") from None
    for override in overrides:
        _apply_override(data, override)
    return data


def read_table(kind: type, data: dict[str, Any], file: str, table: str = "", others: Collection[str] = ()) -> Any:
    """A dataclass `kind` (its fields are settings or tables of settings) from the tables of a file.

    file, table: for messages. others: names beside the fields that are left alone. Raises ConfigError in one line.
    """
    known = {entry.name: entry for entry in fields(kind)}
    hints = typing.get_type_hints(kind)
    for key in data:
        if key not in known and key not in others:
            raise ConfigError(f"{file}: {_place(table, key)} is not a setting{_nearest(key, known)}")
    values: dict[str, Any] = {}
    for key, entry in known.items():
        hint = hints[key]
        inner = f"{table}.{key}" if table else key
        if isinstance(hint, type) and is_dataclass(hint):
            given = data.get(key, {})
            if not isinstance(given, dict):
                raise ConfigError(f"{file}: [{inner}] is a table, not {_show(given)}")
            values[key] = read_table(hint, given, file, inner)
        elif key in data:
            values[key] = _read_value(data[key], hint, entry, f"{file}: {_place(table, key)}")
        elif entry.default is MISSING and entry.default_factory is MISSING:
            raise ConfigError(f"{file}: {_place(table, key)} is missing: {entry.metadata.get('doc', '')}")
    result = kind(**values)
    validate = getattr(result, "validate", None)
    if validate is not None:
        try:
            validate()
        except ConfigError as error:
            raise ConfigError(f"{file}: {error}") from None
    return result


def flatten(config: Any, prefix: str = "") -> dict[str, Any]:
    """Every setting of a dataclass tree under its dotted name."""
    flat: dict[str, Any] = {}
    for entry in fields(config):
        value, name = getattr(config, entry.name), f"{prefix}{entry.name}"
        if is_dataclass(value):
            flat.update(flatten(value, name + "."))
        else:
            flat[name] = value
    return flat


def documentation(kind: type, prefix: str = "") -> dict[str, str]:
    """The line of documentation of every setting under its dotted name."""
    hints = typing.get_type_hints(kind)
    lines: dict[str, str] = {}
    for entry in fields(kind):
        hint, name = hints[entry.name], f"{prefix}{entry.name}"
        if isinstance(hint, type) and is_dataclass(hint):
            lines.update(documentation(hint, name + "."))
        else:
            lines[name] = entry.metadata["doc"]
    return lines


def _siblings(path: Path) -> str:
    near = sorted(str(other) for other in path.parent.glob("*.toml")) if path.parent.is_dir() else []
    return f"; there are {', '.join(near)}" if near else ""


def _apply_override(data: dict[str, Any], override: str) -> None:
    name, equals, text = override.partition("=")
    keys = name.strip().split(".")
    if not equals or len(keys) < 2 or not all(keys):
        raise ConfigError(f"--set {override}: write it as table.key=value, for instance --set run.steps=20")
    try:
        value = tomllib.loads(f"value = {text.strip()}")["value"]
    except tomllib.TOMLDecodeError:
        value = text.strip()
    table = data
    for key in keys[:-1]:
        table = table.setdefault(key, {})
        if not isinstance(table, dict):
            raise ConfigError(f"--set {override}: {key} is a value, not a table")
    table[keys[-1]] = value


def _place(table: str, key: str) -> str:
    return f"[{table}] {key}" if table else f"[{key}]"


def _nearest(key: str, known: dict[str, Any]) -> str:
    match = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
    return f"; did you mean {match[0]}?" if match else f"; known are {', '.join(known)}"


def _show(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value).replace("'", '"')


def _read_value(value: Any, hint: Any, entry: Field[Any], place: str) -> Any:
    options = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    for option in options:
        found = _convert(value, option)
        if found is not None:
            return _check_bounds(found, entry, place)
    raise ConfigError(f"{place} must be {' or '.join(_type_name(option) for option in options)}, not {_show(value)}")


def _convert(value: Any, hint: Any) -> Any:
    """The value as the type `hint`, or None where it is of another type. true is never taken for 1."""
    if hint is float and isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    if typing.get_origin(hint) is tuple:
        inner = typing.get_args(hint)[0]
        if isinstance(value, list):
            items = [_convert(item, inner) for item in value]
            return None if any(item is None for item in items) else tuple(items)
        return None
    return value if type(value) is hint else None


def _type_name(hint: Any) -> str:
    if typing.get_origin(hint) is tuple:
        return f"a list of {_type_name(typing.get_args(hint)[0]).removeprefix('a ')}s"
    return {bool: "true or false", int: "a whole number", float: "a number", str: "a string"}[hint]


def _check_bounds(value: Any, entry: Field[Any], place: str) -> Any:
    meta = entry.metadata
    if meta.get("choices") and value not in meta["choices"]:
        allowed = ", ".join(_show(choice) for choice in meta["choices"])
        near = difflib.get_close_matches(str(value), [str(choice) for choice in meta["choices"]], n=1)
        raise ConfigError(
            f"{place} is {_show(value)}; allowed: {allowed}" + (f" (did you mean {near[0]}?)" if near else "")
        )
    for bound, word in (("ge", "at least"), ("gt", "above"), ("le", "at most"), ("lt", "below")):
        limit = meta.get(bound)
        if limit is None:
            continue
        fine = {"ge": value >= limit, "gt": value > limit, "le": value <= limit, "lt": value < limit}[bound]
        if not fine:
            raise ConfigError(f"{place} must be {word} {limit:g}, not {_show(value)}: {meta['doc']}")
    return value
