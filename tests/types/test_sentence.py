from deixis.types import Phrase, Sentence, Token


def test_a_phrase_is_found_in_its_text() -> None:
    sentence = Sentence(
        "Two dogs  run .",
        (Token("Two", 0, 3), Token("dogs", 4, 8), Token("run", 10, 13), Token(".", 14, 15)),
        (Phrase(0, 2),),
    )
    assert sentence.phrase_span(sentence.phrases[0]) == (0, 8)
    assert sentence.phrase_text(sentence.phrases[0]) == "Two dogs"
    assert sentence.words == ("two", "dogs", "run", ".")
