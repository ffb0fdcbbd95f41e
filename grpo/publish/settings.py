"""Table [publish] of a run's config, and what can be said about it before anything is sent."""

from __future__ import annotations

from dataclasses import dataclass

from render.errors import ConfigError
from render.settings import setting


@dataclass(frozen=True)
class PublishSettings:
    """Table [publish]: the run goes to the Hugging Face Hub while it goes on."""

    to: str = setting(
        "", doc='repository on the Hub ("owner/name"); its rollouts go to owner/name-rollouts; empty = off'
    )
    every: int = setting(0, doc="steps between two uploads, in the background; 0 = once, when the run ends", ge=0)
    private: bool = setting(True, doc="repositories that are new are private")

    def validate(self) -> None:
        """ConfigError for a name that the Hub would refuse, and for settings without effect."""
        if self.to:
            try:
                check_name(self.to)
            except ConfigError as error:
                raise ConfigError(f"[publish] to: {error}") from None
        elif self != PublishSettings():
            raise ConfigError("[publish] every and private have no effect without to; name the repository")


def check_name(name: str) -> None:
    """Raise ConfigError unless name is owner/name, as the Hub takes it, with room for -rollouts behind it."""
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id

    if name.count("/") != 1:
        raise ConfigError(f'"{name}" is not owner/name, for instance ada/hibiscus')
    try:
        validate_repo_id(f"{name}-rollouts")
    except HFValidationError as error:
        raise ConfigError(f'"{name}": {" ".join(str(error).split())}') from None


def lacking(settings: PublishSettings) -> str:
    """What this machine lacks for [publish], in a line; empty = nothing."""
    if not settings.to:
        return ""
    from huggingface_hub import get_token

    if get_token():
        return ""
    return f'[publish] to = "{settings.to}": no token for the Hub: `hf auth login`, or HF_TOKEN=... (with write access)'
