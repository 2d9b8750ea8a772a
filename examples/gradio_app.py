"""Deixis as a Gradio app: a photo gets a sentence with boxes, and boxes for the phrases you type.

``pip install "deixis[gradio]"``, then ``python examples/gradio_app.py`` and open http://127.0.0.1:7860.
"""

from __future__ import annotations

from typing import Any

import gradio as gr

import deixis

MODEL = deixis.load("lite")


def answer(photo: Any, phrases: str) -> tuple[tuple[Any, list[Any]], str]:
    """Return the photo with boxes and their names, and the sentence; what is doubted or not found has no box."""
    if photo is None:
        raise gr.Error("Choose a photo first.")
    seen = MODEL.regions([photo])[0]
    caption = MODEL.caption(seen)
    wanted = [phrase.strip() for phrase in phrases.split(",") if phrase.strip()]
    found = [phrase for phrase in MODEL.ground(seen, wanted) if phrase.found] if wanted else []
    things = [*(word for word in caption if word.trusted), *found]
    return (photo, [(tuple(map(round, box)), one.text) for one in things for box in one.boxes]), caption.text


inputs = [gr.Image(type="pil", label="Photo"), gr.Textbox(label="Phrases, with commas between them")]
outputs = [gr.AnnotatedImage(label="Boxes"), gr.Textbox(label="Sentence")]
app = gr.Interface(answer, inputs, outputs, title="Deixis", flagging_mode="never", analytics_enabled=False)

if __name__ == "__main__":
    app.launch()
