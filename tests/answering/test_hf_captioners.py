"""Small captioners with random weights, saved and loaded through the real classes of transformers."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image
from typer.testing import CliRunner

import deixis
from deixis.answering.hf_captioners import HfCaptioner, Preparation
from deixis.answering.load import Deixis
from deixis.answering.retold import Retold
from deixis.answering.sentences import Said, load_teller, spoken_words
from deixis.cli.main import app
from deixis.errors import BadFileError, DeixisError, MissingExtraError

transformers: Any = pytest.importorskip("transformers", reason="needs transformers: pip install 'deixis[hf]'")

PHOTOS = Path(__file__).parents[2] / "examples" / "photos"
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[IMG]"]
WORDS = [*SPECIAL, "a", "cat", "with", "eyes", "cup", "of", "coffee", "on", "table", "woman", "suit", "helmet", "zorb"]
KINDS = ("blip", "git", "vision-encoder-decoder", "florence2")
TEXT = {"vocab_size": len(WORDS), "pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3}
LAYER = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}


def small_model(kind: str) -> Any:
    torch.manual_seed(3)
    vision = LAYER | {"image_size": 32, "patch_size": 16}
    if kind == "blip":
        text = LAYER | TEXT | {"sep_token_id": 3, "encoder_hidden_size": 16, "projection_dim": 16, "is_decoder": True}
        config = transformers.BlipConfig(vision_config=vision, text_config=text, projection_dim=16)
        return transformers.BlipForConditionalGeneration(config)
    if kind == "git":
        return transformers.GitForCausalLM(transformers.GitConfig(vision_config=vision, **LAYER, **TEXT))
    if kind == "vision-encoder-decoder":
        gpt = transformers.GPT2Config(n_embd=16, n_layer=1, n_head=2, add_cross_attention=True, is_decoder=True, **TEXT)
        both = transformers.VisionEncoderDecoderConfig.from_encoder_decoder_configs(
            transformers.ViTConfig(**vision), gpt
        )
        both.decoder_start_token_id, both.pad_token_id, both.eos_token_id = 2, 0, 3
        return transformers.VisionEncoderDecoderModel(both)
    text = transformers.BartConfig(
        d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2, decoder_attention_heads=2,
        encoder_ffn_dim=16, decoder_ffn_dim=16, decoder_start_token_id=3, forced_eos_token_id=3, **TEXT,
    )  # fmt: skip
    seen = {
        "depths": [1, 1, 1, 1], "embed_dim": [8, 8, 8, 16], "num_heads": [1, 1, 1, 2], "num_groups": [1, 1, 1, 2],
        "window_size": 2, "projection_dim": 16,
    }  # fmt: skip
    config = transformers.Florence2Config(vision_config=seen, text_config=text, image_token_id=4)
    return transformers.Florence2ForConditionalGeneration(config)


def save(kind: str, folder: Path) -> str:
    from tokenizers import Tokenizer, models, pre_tokenizers

    model = small_model(kind)
    model.save_pretrained(folder)
    words = Tokenizer(models.WordLevel({word: at for at, word in enumerate(WORDS)}, unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    names = dict(zip(("pad_token", "unk_token", "bos_token", "eos_token"), SPECIAL[:4], strict=True))
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=words, additional_special_tokens=["[IMG]"], **names
    ).save_pretrained(folder)
    side = 64 if kind == "florence2" else 32
    prepare: dict[str, Any] = {"size": {"height": side, "width": side}, "image_mean": [0.4] * 3, "image_std": [0.3] * 3}
    if kind == "florence2":
        prepare["image_seq_length"] = 5  # 64 pixels are 2 x 2 patches, and their mean
    (folder / "preprocessor_config.json").write_text(json.dumps(prepare))
    return f"hf:{folder}"


def photo(name: str) -> NDArray[np.uint8]:
    return np.asarray(Image.open(PHOTOS / name).convert("RGB"))


@pytest.mark.parametrize("kind", KINDS)
def test_a_saved_captioner_says_what_its_model_generates(kind: str, tmp_path: Path) -> None:
    teller = load_teller(save(kind, tmp_path))
    assert isinstance(teller, HfCaptioner)
    assert teller.name == f"hf:{tmp_path}"
    image = photo("coffee.jpg")
    (greedy,) = teller.say(image, beam=1)
    model = small_model(kind).eval()
    side = 64 if kind == "florence2" else 32
    resized = np.asarray(Image.fromarray(image).resize((side, side), Image.Resampling.BICUBIC))
    inputs: dict[str, Any] = {"pixel_values": ((torch.tensor(resized).permute(2, 0, 1) / 255 - 0.4) / 0.3)[None]}
    if kind == "florence2":
        inputs["input_ids"] = torch.tensor([[4] * 5 + [2] + [1] * 6 + [3]])  # the question's six words are unknown
    with torch.no_grad():
        ids = model.generate(**inputs, num_beams=1, do_sample=False, max_new_tokens=40)[0].tolist()
    assert greedy.text == " ".join(WORDS[at] for at in ids if at >= len(SPECIAL))
    assert greedy.score < 0
    several = teller.say(image, beam=4, count=4)
    assert 1 <= len(several) <= 4
    assert len({said.text for said in several}) == len(several)
    assert [said.score for said in several] == sorted((said.score for said in several), reverse=True)
    assert teller.say(image, beam=4)[0] == several[0]


def test_pictures_are_prepared_as_the_library_does() -> None:
    image = photo("chelsea.jpg")
    clip = {"size": {"shortest_edge": 40}, "do_center_crop": True, "crop_size": {"height": 32, "width": 36}}
    normal = {"image_mean": [0.4, 0.5, 0.6], "image_std": [0.2, 0.3, 0.4]}
    for kind, config in (("CLIPImageProcessor", clip | normal), ("ViTImageProcessor", {"size": 32} | normal)):
        real = getattr(transformers, f"{kind}Pil", None) or getattr(transformers, kind)
        resample = {"resample": 3 if kind.startswith("CLIP") else 2}
        expected = real(**config, **resample)(images=Image.fromarray(image), return_tensors="pt")["pixel_values"]
        made = Preparation.from_config(config | resample)(image)
        assert made.shape == expected.shape
        assert torch.allclose(made, expected, atol=0.03)


@pytest.fixture(scope="module")
def told(small_bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> Deixis:
    return deixis.load(small_bundle, captioner=save("git", tmp_path_factory.mktemp("git")))


def test_its_words_point_at_our_regions(told: Deixis) -> None:
    paths = [PHOTOS / "coffee.jpg", PHOTOS / "chelsea.jpg"]
    together = told.captions(paths, beam=2)
    assert together == [told.caption(path, beam=2) for path in paths]
    for path, caption in zip(paths, together, strict=True):
        assert " with hf:" in caption.model
        assert caption.image == str(path)
        for word in caption.words:
            assert caption.text[word.start : word.end] == word.text
    assert told.methods == ("grounder",)
    assert told.alternatives(paths[0], beam=3)[0].text == told.caption(paths[0], beam=3).text
    assert not told.look(paths[0], beam=2).attention.any()
    with pytest.raises(DeixisError, match="give the photo"):
        told.caption(told.regions(paths)[0])
    with pytest.raises(DeixisError, match="cannot point by 'attention'"):
        told.caption(paths[0], method="attention")


class Fixed:
    """A captioner that says one thing."""

    name = "fixed"

    def __init__(self, *texts: str) -> None:
        self.texts = list(texts)

    def say(self, image: NDArray[np.uint8], *, beam: int, count: int = 1) -> list[Said]:
        return [Said(self.texts.pop(0) if len(self.texts) > 1 else self.texts[0], -1.0)]


def retold(bundle: Path, *texts: str) -> Retold:
    own = deixis.load(bundle)
    assert own.grounder is not None
    return Retold(own.extractor, own.grounder, Fixed(*texts), name="small", card=own.card)


def test_things_point_where_the_grounder_finds_them_and_unknown_ones_are_doubted(small_bundle: Path) -> None:
    model = retold(small_bundle, "a cat with a zorbomat")
    caption = model.caption(PHOTOS / "chelsea.jpg")
    assert (caption.text, caption.model) == ("A cat with a zorbomat.", "small with fixed")
    words = {word.text: word for word in caption.words}
    (cat, zorbomat) = model.ground(PHOTOS / "chelsea.jpg", sentence=caption.text).phrases
    assert words["cat"].boxes == cat.boxes
    assert words["cat"].presence is not None
    assert not words["zorbomat"].trusted
    assert not zorbomat.found
    assert not words["with"].groundable
    unchecked = retold(small_bundle, "a cat").caption(PHOTOS / "chelsea.jpg", check=False)
    assert [(word.text, word.trusted, word.presence) for word in unchecked.words[1:]] == [("cat", True, None)]


def test_a_clip_is_told_as_most_of_its_frames_are(small_bundle: Path, tmp_path: Path) -> None:
    from tests.answering.test_clips import film

    clip = film(tmp_path / "cup.mp4", ["coffee"], seconds=1)
    model = retold(small_bundle, "a cat", "a cup on a table", "a cup on a table")
    (caption,) = model.video(clip, frames=3)
    assert caption.text == "A cup on a table."
    assert {word.text for word in caption.words if word.boxes} == {"cup", "table"}


def test_sentences_are_written_alike() -> None:
    from deixis.text.vocabulary import Entry, Vocabulary

    words = Vocabulary([Entry("dog", 9, "NN", "dog", True)])
    assert spoken_words(Said(" the  dog. "), (4, 4), words).text == "The dog."
    assert spoken_words(Said(""), (4, 4), words).words == ()
    (the, dog) = spoken_words(Said("the dog"), (4, 4), words).words
    assert (the.groundable, dog.groundable) == (False, True)


def test_the_command_line_takes_it(small_bundle: Path, tmp_path: Path) -> None:
    name = save("blip", tmp_path / "blip")
    photo, model = str(PHOTOS / "coffee.jpg"), ["--model", str(small_bundle), "--beam", "2", "--json"]
    done = CliRunner().invoke(app, ["caption", photo, "--captioner", name, *model], catch_exceptions=False)
    assert done.exit_code == 0
    assert json.loads(done.stdout)["model"].endswith(f" with {name}")


def test_what_cannot_be_loaded_says_why(small_bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DeixisError, match="unknown captioner 'blip'"):
        load_teller("blip")
    with pytest.raises(BadFileError, match="neither a folder here nor a name on the hub"):
        load_teller("hf:no such folder")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(BadFileError, match="cannot be had from the hub"):
        load_teller("hf:nobody/nothing")
    transformers.BertConfig().save_pretrained(tmp_path)
    with pytest.raises(DeixisError, match="is a bert: captioners of these kinds are read: blip, git"):
        load_teller(f"hf:{tmp_path}")
    folder = tmp_path / "git"
    save("git", folder)
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(BadFileError, match=r"no weights as safetensors but pytorch_model.bin: pickled"):
        load_teller(f"hf:{folder}")
    (folder / "config.json").write_text("{}")
    with pytest.raises(BadFileError, match="cannot be loaded"):
        load_teller(f"hf:{folder}")
    with pytest.raises(DeixisError, match="no grounder to point with"):
        deixis.load(small_bundle / "captioner", captioner=f"hf:{folder}")
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MissingExtraError, match=r"deixis\[hf\]"):
        load_teller(f"hf:{folder}")
