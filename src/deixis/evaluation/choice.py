"""Letting the grounder choose among captions while a dataset is measured, as it does when a photo is answered."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from deixis.answering.load import Deixis
from deixis.captioning.search.strategy import Generated
from deixis.evaluation.evaluate import Evaluation, with_model


def choice_of(model: Deixis, work: Evaluation) -> Callable[[Generated, Sequence[str]], Generated] | None:
    """Return what ranks the captions of a beam anew by the images' names; None where the captioner is asked alone."""
    grounder, chooser = model.grounder, model.chooser
    if grounder is None or chooser is None:
        return None
    source = with_model(work, grounder).source
    return lambda generated, images: chooser(generated, source.regions(images).to(work.options.device))
