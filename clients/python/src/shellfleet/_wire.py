"""Converts between the JSON of the API, in camel case, and the types of this package, in snake case."""

from __future__ import annotations

import functools
import re
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, TypeVar, cast

from .errors import ShellfleetError

T = TypeVar("T")
Json = Any
_Convert = Callable[[Any], Any]

# Fields whose keys are data, such as names of variables, and stay as they are.
_DATA = frozenset({"env", "secrets", "labels", "hosts", "resources", "config_overrides", "files", "outputs"})


def to_camel(name: str) -> str:
    """Returns the name of a field in the JSON of the API: `timeoutMs` for `timeout_ms`."""
    first, *rest = name.split("_")
    return first + "".join(word[:1].upper() + word[1:] for word in rest)


def to_snake(name: str) -> str:
    """Returns the name of a field in this package: `timeout_ms` for `timeoutMs`."""
    return re.sub(r"(?<=[a-z0-9])[A-Z]", lambda letter: f"_{letter[0].lower()}", name)


def to_json(value: Any) -> Json:
    """Returns options as the API takes them. Options that are None are left out, as if they were absent."""
    if isinstance(value, Mapping):
        mapping = cast("Mapping[str, Any]", value)
        return {
            to_camel(name): item if name in _DATA else to_json(item)
            for name, item in mapping.items()
            if item is not None
        }
    if isinstance(value, (list, tuple)):
        return [to_json(item) for item in cast("list[Any]", value)]
    return value


def to_plain(value: Json) -> Any:
    """Returns data of no fixed type with the names of this package."""
    if isinstance(value, dict):
        return {to_snake(name): to_plain(item) for name, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [to_plain(item) for item in cast("list[Any]", value)]
    return value


def from_json(cls: type[T], value: Json) -> T:
    """Returns a dataclass from a reply of the API. Fields that only newer servers know are left out."""
    try:
        return _converter(cls)(value)
    except (KeyError, TypeError, AttributeError) as error:
        message = f"The API sent a {cls.__name__} that this client cannot read: {error!r}."
        raise ShellfleetError("PROTOCOL_MISMATCH", message) from error


@functools.cache
def _converter(hint: Any) -> _Convert:
    """Returns the function that converts a JSON value to a type."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if isinstance(hint, type) and is_dataclass(hint):
        return _dataclass_converter(hint)
    if origin in (typing.Union, types.UnionType):
        inner = [_converter(argument) for argument in arguments if argument is not type(None)]
        # A union of several types is one of plain JSON.
        return _optional(inner[0]) if len(inner) == 1 else _same
    if origin is tuple:
        item = _converter(arguments[0])
        return lambda values: tuple(item(value) for value in values)
    if origin is not None and isinstance(origin, type) and issubclass(origin, Mapping):
        item = _converter(arguments[1])
        return lambda values: {key: item(value) for key, value in values.items()}
    return _same


def _dataclass_converter(cls: Any) -> _Convert:
    hints = typing.get_type_hints(cls)
    plan = [
        (field.name, to_camel(field.name), _converter(hints[field.name]), _is_required(field))
        for field in fields(cls)
        if field.init
    ]

    def convert(value: Mapping[str, Any]) -> Any:
        given = {
            name: to_type(value[wire]) for name, wire, to_type, required in plan if required or wire in value
        }
        return cls(**given)

    return convert


def _is_required(field: Any) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def _optional(convert: _Convert) -> _Convert:
    return lambda value: None if value is None else convert(value)


def _same(value: Any) -> Any:
    return value
