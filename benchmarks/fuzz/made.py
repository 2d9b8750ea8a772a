"""Regions, stores, models and answers for the fuzzer: small, but written by the code that writes the real ones."""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from random import Random

import numpy as np
import torch

from deixis.captioning.model.captioner import Captioner
from deixis.captioning.model.config import CaptionerConfig
from deixis.data.sizes import InputSizes
from deixis.grounding.scan import Scan, ScanConfig
from deixis.models.checkpoint import CONFIG, ModelConfig, digest, save_model
from deixis.regions.store.writer import write_store
from deixis.text.vocabulary import Entry, Vocabulary
from deixis.training.recipe import Recipe
from deixis.types import GroundedCaption, GroundedPhrase, GroundedPhrases, GroundedWord, Regions

FINGERPRINT = "made-1"


def regions(seed: int) -> Regions:
    """Five regions of a photo."""
    rng = np.random.default_rng(seed)
    corner = rng.random((5, 2)) * 30
    boxes = torch.tensor(np.concatenate([corner, corner + 10], 1), dtype=torch.float32)
    return Regions(
        boxes=boxes,
        features=torch.tensor(rng.random((5, 6)), dtype=torch.float32),
        objectness=torch.tensor(rng.random(5), dtype=torch.float32),
        size=(64, 48),
        fingerprint=FINGERPRINT,
        class_probs=torch.tensor(rng.random((5, 3)), dtype=torch.float32),
        class_names=("dog", "grass", "ball"),
        word_probs=torch.tensor(rng.random((5, 200)), dtype=torch.float32),
        word_names=tuple(f"word{at}" for at in range(200)),
        global_features=torch.tensor(rng.random((1, 6)), dtype=torch.float32),
    )


def store(root: Path) -> None:
    """A region store of three photos."""
    images = {f"photo {at}": regions(at) for at in range(3)}
    write_store(root / "store", images.items(), list(images), FINGERPRINT, {"max_regions": 9})


def mend_store(root: Path, rng: Random) -> None:
    """Make the checksums of a damaged store right."""
    header = json.loads((root / "store" / "store.json").read_bytes())
    header["index_sha256"] = hashlib.sha256((root / "store" / "index.json").read_bytes()).hexdigest()
    for shard in header["shards"]:
        data = (root / "store" / shard["name"]).read_bytes()
        shard["bytes"], shard["sha256"] = len(data), hashlib.sha256(data).hexdigest()
    (root / "store" / "store.json").write_text(json.dumps(header))


def npz(root: Path) -> None:
    """Plain npz files and those of bottom-up attention."""
    rng = np.random.default_rng(0)
    boxes, features = np.sort(rng.random((4, 2, 2)) * 40, axis=1).reshape(4, 4), rng.random((4, 6))
    for name in ("a", "b"):
        (root / "plain").mkdir(exist_ok=True)
        np.savez_compressed(root / "plain" / f"{name}.npz", boxes=boxes, features=features, size=np.array([64, 48]))
        (root / "bottom-up").mkdir(exist_ok=True)
        np.savez(root / "bottom-up" / f"{name}.npz", x=features, bbox=boxes, cls_prob=rng.random((4, 5)),
                 image_w=np.array(64), image_h=np.array(48), num_bbox=np.array(4))  # fmt: skip


def tsv(root: Path) -> None:
    """Bottom-up attention's TSV."""
    rng = np.random.default_rng(0)
    rows = []
    for name in ("1", "2"):
        packed = [base64.b64encode(rng.random((3, width)).astype("<f4").tobytes()).decode() for width in (4, 6)]
        rows.append("\t".join([name, "64", "48", "3", *packed]))
    (root / "features.tsv").write_text("\n".join(rows) + "\n")


def gvd(root: Path) -> None:
    """GVD's proposals in HDF5, features in npy, names and sizes in JSON."""
    import h5py

    rng = np.random.default_rng(0)
    (root / "features").mkdir()
    table = rng.random((2, 5, 6)).astype(np.float32) * 40
    for name in ("a_1", "b_2"):
        np.save(root / "features" / f"{name}.npy", rng.random((5, 6)).astype(np.float32))
    with h5py.File(root / "proposals.h5", "w") as file:
        file["dets_labels"], file["nms_num"] = table, np.array([3, 3])
    (root / "dic.json").write_text(json.dumps({"images": [{"id": "a_1"}, {"id": "b_2"}]}))
    (root / "sizes.json").write_text(json.dumps({"a_1": [64, 48], "b_2": [64, 48]}))


def models(root: Path) -> None:
    """A bundle of a captioner and a grounder, untrained."""
    torch.manual_seed(0)
    vocabulary = Vocabulary([Entry(word, 9, "NN", word, True) for word in ("cat", "dog", "man")])
    sizes = InputSizes.of(regions(0), len(vocabulary))
    made = {
        "captioner": (Captioner(CaptionerConfig(16), sizes), {"kind": "captioner", "width": 16}),
        "grounder": (
            Scan(ScanConfig(width=16, word_width=8), sizes, vocabulary),
            {"kind": "scan", "width": 16, "word_width": 8},
        ),
    }
    for role, (model, options) in made.items():
        plain = {"about": {"title": role}, "data": {"dataset": "a", "store": "none", "regions": 20}, "model": options,
                 "stages": [{"name": "only", "epochs": 1, "objectives": ["cross_entropy"]}]}  # fmt: skip
        (root / role).mkdir()
        config = ModelConfig(
            Recipe.from_plain(plain).plain(), FINGERPRINT, {"extractor": "lite", "max_regions": 9}, asdict(sizes)
        )
        save_model(root / role, model, vocabulary, config)
    logistic = {"weights": [1.0, 1.0, 1.0], "bias": 0.0}
    calibration = {"format": 1, "right": logistic, "found": logistic, "threshold": 0.5, "facts": {}}
    (root / "grounder" / "calibration.json").write_text(json.dumps(calibration))
    (root / "bundle.json").write_text(json.dumps({"format": 1, "method": "grounder", "pointing": {}, "choice": 0.5}))


def mend_models(root: Path, rng: Random) -> None:
    """Make the checksums of damaged models right."""
    for role in ("captioner", "grounder"):
        config = json.loads((root / role / CONFIG).read_bytes())
        config["files"] = {name: digest(root / role / name) for name in ("model.safetensors", "vocabulary.json")}
        (root / role / CONFIG).write_text(json.dumps(config))


def answers(root: Path) -> None:
    """Answers of all kinds, as the command line writes them."""
    word = GroundedWord("cup", 2, 5, ((1.0, 2.0, 30.0, 40.0),), (0,), 0.5, True, True, 0.9)
    caption = GroundedCaption("a.jpg", (64, 48), "a cup", (word,), -0.5, "lite")
    clip = GroundedCaption("a.mp4", (64, 48), "a cup", (word,), -0.5, "lite", (0.0, 4.0), (1.0, 3.0))
    phrase = GroundedPhrase("a cup", word.boxes, (0,), 0.5, True, 0, 5, word.boxes, (0.5,))
    phrases = GroundedPhrases("a.jpg", (64, 48), (phrase,), "a cup", "lite")
    for name, answer in {"caption": caption.to_json(), "clip": clip.to_json(), "phrases": phrases.to_json()}.items():
        (root / f"{name}.jsonl").write_text((json.dumps(answer) + "\n") * 2)
        (root / f"{name}.json").write_text(json.dumps(answer))
