"""Subject -> chat messages for the policy. The words stand in reward.asking, with those who paint a pool."""

from __future__ import annotations

from reward.asking import FULL, SHORT, request, system_prompt

__all__ = ["FULL", "SHORT", "messages", "system_prompt"]


def messages(system: str, subject: str, composition: str) -> list[dict[str, str]]:
    """Chat messages that ask for one painting of the subject. Raises ConfigError where `system` is no prompt."""
    return [
        {"role": "system", "content": system_prompt(system, composition)},
        {"role": "user", "content": request(subject)},
    ]
