"""Finds the API: its address and key."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast
from urllib.parse import SplitResult, urlsplit

from .errors import ShellfleetError, invalid, unavailable


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Address and key of an API."""

    host: str
    port: int
    secure: bool
    prefix: str
    """Path before `/v1`, for an API behind a proxy. Empty, or begins with `/` and does not end with it."""
    key: str = field(repr=False)

    @property
    def url(self) -> str:
        """The address as text, without the key."""
        return f"{'https' if self.secure else 'http'}://{self.authority}{self.prefix}"

    @property
    def authority(self) -> str:
        """Host and port, as the Host header has them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.secure else 80) else f"{host}:{self.port}"


def find_endpoint(url: str | None, api_key: str | None, env: Mapping[str, str]) -> Endpoint:
    """Returns the API that the arguments name, else the environment, else the connection file of `shellfleet up`."""
    url = url or env.get("SHELLFLEET_URL") or None
    api_key = api_key or env.get("SHELLFLEET_API_KEY") or None
    if url is None:
        known = _read_connection_file(env)
        # The key of the file is for the address of the file only.
        return _to_endpoint(known["url"], api_key or known["key"])
    if api_key is None:
        raise invalid(f"There is no key for {url}. Pass api_key, or set SHELLFLEET_API_KEY.")
    return _to_endpoint(url, api_key)


def connection_file(env: Mapping[str, str]) -> Path:
    """Returns the path of the file in which `shellfleet up` writes where its API is."""
    given = env.get("SHELLFLEET_STATE_DIR")
    if given:
        return Path(given) / "fleet.json"
    state = env.get("XDG_STATE_HOME") or os.path.join(env.get("HOME") or str(Path.home()), ".local", "state")
    return Path(state) / "shellfleet" / "fleet.json"


def _read_connection_file(env: Mapping[str, str]) -> dict[str, str]:
    path = connection_file(env)
    try:
        content: Any = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise unavailable(
            "No API is known. Set SHELLFLEET_URL and SHELLFLEET_API_KEY, or start a fleet with `npx shellfleet up`."
        ) from None
    except (OSError, ValueError) as error:
        raise ShellfleetError("REDIS_UNSUITABLE", f"The connection file {path} cannot be read: {error}.") from error
    api: Any = cast("dict[str, Any]", content).get("api") if isinstance(content, dict) else None
    if not isinstance(api, dict):
        raise unavailable(f"The connection file {path} names no API. Start one with `npx shellfleet serve`.")
    known = cast("dict[str, Any]", api)
    if not isinstance(known.get("url"), str) or not isinstance(known.get("key"), str):
        raise ShellfleetError("REDIS_UNSUITABLE", f"The connection file {path} is not valid: its api lacks url or key.")
    return cast("dict[str, str]", known)


def _to_endpoint(url: str, key: str) -> Endpoint:
    if not re.fullmatch(r"[\x21-\x7e]+", key):
        raise invalid("The API key holds characters that no key has.")
    try:
        parts: SplitResult = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise invalid(f"{url} is not the address of an API: {error}.") from error
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
        raise invalid("The address of an API must be http://host:port or https://host:port, without a user.")
    secure = parts.scheme == "https"
    return Endpoint(parts.hostname, port or (443 if secure else 80), secure, parts.path.rstrip("/"), key)
