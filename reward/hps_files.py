"""The files that HPSv3 is made of: where they lie, which are missing, and how much memory they need. No torch here.

Three pieces: the weights (HPSv3.safetensors), config.json and the tokenizer of the model that they were trained from,
and the instruction text (see `reward.instruction`).
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from render.errors import ConfigError, SetupError
from reward.instruction import CACHE, load_instruction
from reward.settings import Hpsv3Settings

WEIGHTS = "HPSv3.safetensors"
BASE_FILES = ("config.json", "tokenizer.json", "tokenizer_config.json", "vocab.json", "merges.txt")
BASE_NEEDED = ("config.json", "tokenizer.json")

# Parameters of Qwen2-VL-7B without lm_head: the linear layers of its language model, and all the rest (embeddings of
# 151658 tokens, vision tower, norms). Only the first are quantised.
LINEAR, REST = 6.53e9, 1.22e9
BYTES = {"float32": 4.0, "bfloat16": 2.0}
QUANTISED_BYTES = {"8bit": 1.0, "4bit": 0.5 + 4 / 64}  # 4 bit: one float32 scale for 64 weights
WORKING_GB = 0.6  # activations of one painting in a batch


def memory_gb(settings: Hpsv3Settings, gpu: bool) -> float:
    """An estimate, in GB (1e9 bytes), of what the scorer takes of the memory where it lives: weights and activations.

    gpu: what device = "auto" will come to on this machine.
    """
    on_gpu = settings.device == "cuda" or (settings.device == "auto" and gpu)
    width = BYTES[settings.dtype if settings.dtype != "auto" else "bfloat16" if on_gpu else "float32"]
    linear = QUANTISED_BYTES.get(settings.quantization, width)
    return (LINEAR * linear + REST * width) / 1e9 + WORKING_GB * settings.batch_size


def missing_pieces(settings: Hpsv3Settings, cache: Path = CACHE) -> list[str]:
    """One line for each piece that is not on this machine, with the command that brings it. Asks no network.

    Raises ConfigError where a setting names neither a file or folder nor a repository.
    """
    lines = []
    if _on_hub(settings.weights, "weights") and not _in_hub_cache(settings.weights, settings.revision, WEIGHTS):
        lines.append(
            f"the weights of HPSv3 are not here (16.6 GB): hf download {settings.weights} {WEIGHTS} "
            f"--revision {settings.revision}"
        )
    if _on_hub(settings.base, "base"):
        gone = [name for name in BASE_NEEDED if not _in_hub_cache(settings.base, settings.base_revision, name)]
        if gone:
            lines.append(
                f"{' and '.join(gone)} of HPSv3's base are not here: hf download {settings.base} "
                f"{' '.join(BASE_FILES)} --revision {settings.base_revision}"
            )
    elif gone := [name for name in BASE_NEEDED if not (Path(settings.base).expanduser() / name).is_file()]:
        lines.append(f'[reward.hpsv3] base = "{settings.base}" lacks {" and ".join(gone)}')
    try:
        load_instruction(cache)
    except SetupError as error:
        lines.append(str(error))
    return lines


def weights_file(settings: Hpsv3Settings) -> Path:
    """The safetensors file, downloaded at its pinned revision where it is not here. Raises ConfigError, SetupError."""
    if not _on_hub(settings.weights, "weights"):
        return Path(settings.weights).expanduser().resolve()
    _pinned(settings.weights, settings.revision, "revision")
    from huggingface_hub import hf_hub_download

    try:
        return Path(hf_hub_download(settings.weights, WEIGHTS, revision=settings.revision)).resolve()
    # The transport under huggingface_hub differs between its versions, and its errors share no base class.
    except Exception as error:
        raise _unreachable(WEIGHTS, settings.weights, settings.revision, "weights", error) from error


def base_folder(settings: Hpsv3Settings) -> Path:
    """A folder with config.json and the tokenizer, downloaded at its pinned revision where it is not here.

    Raises ConfigError, SetupError.
    """
    if _on_hub(settings.base, "base"):
        _pinned(settings.base, settings.base_revision, "base_revision")
        from huggingface_hub import snapshot_download

        try:
            folder = Path(
                snapshot_download(settings.base, revision=settings.base_revision, allow_patterns=list(BASE_FILES))
            )
        # As above.
        except Exception as error:
            raise _unreachable("config.json", settings.base, settings.base_revision, "base", error) from error
    else:
        folder = Path(settings.base).expanduser()
    for name in BASE_NEEDED:
        if not (folder / name).is_file():
            raise SetupError(f'[reward.hpsv3] base = "{settings.base}" lacks {name}')
    return folder


def fingerprint(path: Path, blocks: int = 256, size: int = 1 << 16) -> str:
    """A sum that tells one weights file from another without reading 16 GB: its length and evenly spread blocks of it.

    The first block holds names and shapes of all tensors, the last one the end of the file.
    """
    length = path.stat().st_size
    digest = hashlib.sha256(str(length).encode())
    with path.open("rb") as stream:
        for index in range(blocks):
            stream.seek(max(0, length - size) * index // (blocks - 1))
            digest.update(stream.read(size))
    return digest.hexdigest()


def _on_hub(value: str, key: str) -> bool:
    """Whether a setting names a repository of the Hub; False where it names something of this machine."""
    path = Path(value).expanduser()
    if path.is_file() if key == "weights" else path.is_dir():
        return False
    if value.count("/") == 1 and not value.startswith((".", "/", "~")) and not value.endswith(".safetensors"):
        return True
    wanted = f"the path of {WEIGHTS}" if key == "weights" else "a folder with config.json and tokenizer.json"
    raise ConfigError(f'[reward.hpsv3] {key} = "{value}": neither {wanted} nor a repository "org/name"')


def _pinned(repository: str, revision: str, key: str) -> None:
    if not revision:
        raise ConfigError(f'[reward.hpsv3] {repository} needs {key} = "<commit>": the weights are part of the reward')


def _in_hub_cache(repository: str, revision: str, name: str) -> bool:
    from huggingface_hub import try_to_load_from_cache

    return isinstance(try_to_load_from_cache(repository, name, revision=revision or None), str)


def _unreachable(name: str, repository: str, revision: str, key: str, error: Exception) -> SetupError:
    reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
    return SetupError(
        f"[reward.hpsv3] {name} of {repository} at {revision} could not be fetched from the Hugging Face Hub "
        f"({reason}); {key} may also name a copy on this machine"
    )
