"""Models on the Hugging Face hub, uploaded: exactly the bundle and a model card, and nothing else."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deixis.atomic import write_text
from deixis.errors import DeixisError
from deixis.models.bundle import Bundle, find_bundle, join, write_bundle
from deixis.models.checkpoint import load_config
from deixis.models.names import ROLES

if TYPE_CHECKING:
    from huggingface_hub import HfApi


def push_to_hub(
    model: str | Path | Bundle,
    repository: str,
    *,
    grounder: str | Path | None = None,
    private: bool = False,
    half: bool = True,
    message: str = "Upload a Deixis model",
    api: HfApi | None = None,
) -> str:
    """Upload a run, a model or a bundle as one bundle with a model card; returns its address.

    Args:
        model: As for :func:`deixis.load`, or a bundle that was found already.
        repository: OWNER/NAME on the hub; made if it does not exist.
        grounder: Takes the grounder from another run.
        private: Whether a new repository is private.
        half: Weights in half precision, half the size.
        message: The commit's message.
        api: Another client, such as one with a token or an endpoint of its own.
    """
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HFValidationError

    found = model if isinstance(model, Bundle) else find_bundle(model)
    bundle = join(found, None if grounder is None else find_bundle(grounder))
    client = api or HfApi()
    with tempfile.TemporaryDirectory() as aside:
        folder = Path(aside) / "bundle"
        write_bundle(folder, bundle, half=half)
        write_text(folder / "README.md", model_card(bundle, repository))
        try:
            client.create_repo(repository, private=private, exist_ok=True)
            return str(client.upload_folder(repo_id=repository, folder_path=folder, commit_message=message))
        except HFValidationError as error:
            raise DeixisError(f"'{repository}' is no name of a repository (OWNER/NAME): {error}") from error
        except Exception as error:  # the hub's client lets those of its HTTP library through, which has changed before
            reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            raise DeixisError(
                f"cannot upload to '{repository}': {reason}; is there a network, and did you log in (hf auth login)? "
                "-o FOLDER writes the bundle here"
            ) from error


def model_card(bundle: Bundle, repository: str) -> str:
    """Return the README of a model: what it is, how to use it, what it was trained on, what was measured."""
    parts: list[str] = []
    for role in ROLES:
        folder: Path | None = getattr(bundle, role)
        if folder is None:
            continue
        config = load_config(folder)
        about = config.recipe.get("about")
        about = about if isinstance(about, Mapping) else {}
        rows: dict[str, Any] = {
            "model": config.model.kind,
            "recipe": about.get("title") or "of one's own",
            "paper": about.get("paper"),
            "trained on": f"{config.inputs.dataset}, split {config.inputs.train}",
            "regions": config.fingerprint,
            **{f"{name} (validation)": f"{value:.3f}" for name, value in config.metrics.items()},
        }
        table = "\n".join(f"| {name} | {value} |" for name, value in rows.items() if value)
        parts.append(f"## {role.capitalize()}\n\n| | |\n|---|---|\n{table}\n")
    first = "model.caption('photo.jpg').text" if bundle.captioner else "model.ground('photo.jpg', ['a man'])"
    return (
        "---\nlibrary_name: deixis\npipeline_tag: image-to-text\ntags: [grounded-captioning, phrase-grounding]\n---\n"
        f"# {repository}\n\nA model of Deixis: captions whose words point at boxes, and boxes for phrases, learned "
        "from image-caption pairs.\n\n"
        f"```python\nimport deixis\n\nmodel = deixis.load('{repository}')\n{first}\n```\n\n" + "\n".join(parts)
    )
