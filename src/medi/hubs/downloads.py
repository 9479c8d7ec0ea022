"""Files of the Hugging Face hub. Of weights only safetensors files are taken, so that nothing is unpickled."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from logging import ERROR, getLogger
from pathlib import Path

from medi.core.errors import InputError, reason_of

CARD = "README.md"
NOT_STATED = "not stated"


@contextmanager
def quiet(library: str) -> Iterator[None]:
    """Let a library log errors only: what people need to know is said in one line."""
    logger = getLogger(library)
    before = logger.level
    logger.setLevel(ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


def weights_file(name: str, hub: str, file: str) -> Path:
    """The safetensors file that stands for a file of weights on the hub."""
    safe = {"pytorch_model.bin": "model", "open_clip_pytorch_model.bin": "open_clip_model"}
    return fetch(
        name, hub, f"{safe.get(file, Path(file).stem)}.safetensors", "no weights as safetensors, and no others are read"
    )


def fetch(name: str, hub: str, file: str, without: str) -> Path:
    """A file of the hub, which is not asked where it is kept here; `without` says what a model without it has."""
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import (
        EntryNotFoundError,
        GatedRepoError,
        HFValidationError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
    )

    try:
        with quiet("huggingface_hub"):
            try:
                return Path(hf_hub_download(hub, file, local_files_only=True))
            except LocalEntryNotFoundError:
                return Path(hf_hub_download(hub, file))
    except GatedRepoError as error:
        raise InputError(
            f"{name} is for those who accept its terms: do so on https://huggingface.co/{hub}, then `hf auth login`."
        ) from error
    except (RepositoryNotFoundError, HFValidationError) as error:
        near = _near(hub) if isinstance(error, RepositoryNotFoundError) else []
        hint = f"did you mean {' or '.join(near)}?" if near else "look for its name on https://huggingface.co/models."
        raise InputError(f"the Hugging Face hub has no model '{hub}': {hint}") from error
    except LocalEntryNotFoundError as error:  # before its parent: the network is silent
        raise _not_had(name, error) from error
    except EntryNotFoundError as error:
        raise InputError(f"{name}: {hub} has {without}: choose another model.") from error
    except Exception as error:  # a download can fail in as many ways as there are networks
        raise _not_had(name, error) from error


def _near(hub: str) -> list[str]:
    """Names on the hub that are like one that is not there; none where it does not answer."""
    from huggingface_hub import list_models

    owner, _, model = hub.rpartition("/")
    names: set[str] = set()
    with suppress(Exception), quiet("huggingface_hub"):
        names |= {found.id for found in list_models(search=model, limit=50)}
        names |= {found.id for found in list_models(author=owner, limit=1000)} if owner else set()
    return get_close_matches(hub, sorted(names), n=3)


def card_licence(model: str | Path) -> str:
    """The licence that the card of a model states: of one on the hub, or in a folder."""
    from huggingface_hub import ModelCard

    with suppress(Exception):  # there is no card, or it is no card, or the network is silent
        card = model / CARD if isinstance(model, Path) else fetch(model, model, CARD, "no card")
        data = ModelCard(card.read_text(encoding="utf-8"), ignore_metadata_errors=True).data
        name = data.get("license_name") if data.get("license") in (None, "other") else data.get("license")
        return str(name or data.get("license") or NOT_STATED)
    return NOT_STATED


def _not_had(name: str, error: Exception) -> InputError:
    reason = reason_of(error.__cause__ or error)
    return InputError(f"the weights of {name} could not be had ({reason}): check the network and retry.")
