"""Self-critical sequence training (paper 2, section 3.3, eqs. 17-19)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor

from deixis.captioning.model.captioner import answering
from deixis.captioning.model.distributed_attention import DistributedAttention
from deixis.captioning.search.strategy import Strategy
from deixis.errors import BadRecipeError
from deixis.interfaces import Grounder
from deixis.objectives.base import Context, Objective
from deixis.objectives.rewards import CaptionRewards, kept_frequencies
from deixis.processes import masked_mean
from deixis.text.vocabulary import PAD, Vocabulary


@dataclass(frozen=True, slots=True)
class SelfCriticalOptions:
    """Rewards and how they are sampled. Paper 2: one sample per caption, greedy baseline, CIDEr-D + matching score."""

    cider: float = 1.0
    bleu: float = 0.0
    grounders: Mapping[str, float] = field(default_factory=dict)
    """Weight of the matching score of each grounder (lambda_2 of eq. 19), by run folder or known name."""
    samples: int = 5
    """Captions sampled per image; 5 is one per ground-truth caption."""
    baseline: Literal["greedy", "others"] = "greedy"
    """What a sample must beat: the greedy caption, or the mean of the image's other samples."""
    temperature: float = 1.0
    max_length: int = 20
    dropout: bool = False
    """Whether dropout acts while the samples are scored for the gradient; they are always drawn without it."""

    def __post_init__(self) -> None:
        if self.samples < 1 or (self.baseline == "others" and self.samples < 2):
            raise ValueError(f"samples {self.samples}: at least 1, and 2 for the baseline 'others'")


class SelfCritical(Objective):
    """-(r(sample) - r(baseline)) log p(sample), the gradient of eq. 18.

    Samples are drawn without gradient, all images and samples at once; one teacher-forced pass over them then gives
    the gradient, which is exact because it recomputes the same probabilities. With branches, p is their mean. Greedy
    captions are found once per image. Rewards of samples and baselines come out of one call.

    The expected gradient of a log-probability is 0 only under its own distribution. So every word counts that was
    drawn and none that was not: the unknown word may be drawn, and the end that is put after a sample of
    ``max_length`` words has no gradient. Otherwise the baseline, which most samples do not reach, would push the
    model steadily towards unknown words and captions without end.

    Rennie et al., *Self-critical Sequence Training for Image Captioning*, CVPR 2017; Zhou et al., *More Grounded Image
    Captioning by Distilling Image-Text Matching Model*, CVPR 2020, section 3.3, equations 17 to 19. Use instead of
    ``cross_entropy``, after a stage of it.

    >>> objective = SelfCritical(vocabulary, data)
    >>> losses = objective(Context(captioner, batch))
    >>> losses["self_critical"].backward()
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        data: Any = None,
        options: SelfCriticalOptions | None = None,
        load_grounder: Callable[[str], Grounder] | None = None,
        rewards: CaptionRewards | None = None,
    ) -> None:
        """``rewards`` itself, or ``data`` whose ``train.examples`` give the references."""
        super().__init__()
        self.options = options = options or SelfCriticalOptions()
        if rewards is None:
            if data is None:
                raise BadRecipeError("the objective 'self_critical' needs the training captions as references")
            if options.grounders and load_grounder is None:
                raise BadRecipeError(f"nothing here can load the grounder '{next(iter(options.grounders))}'")
            grounders = {
                name: (load_grounder(name), weight) for name, weight in options.grounders.items() if load_grounder
            }
            references = {
                example.id: [caption.words for caption in example.captions] for example in data.train.examples
            }
            rewards = CaptionRewards(
                references,
                vocabulary,
                cider=options.cider,
                bleu=options.bleu,
                grounders=grounders,
                frequencies=kept_frequencies(references) if options.cider else None,
            )
        self._rewards = (rewards,)  # in a tuple: grounders that reward are not ours to train or save

    def forward(self, context: Context) -> dict[str, Tensor]:
        """Return ``self_critical``; the rewards are watched."""
        options, batch, captioner = self.options, context.batch, context.captioner
        attention = captioner.decoder.attention
        if isinstance(attention, DistributedAttention):
            attention.join()
        images = len(batch.regions)
        with answering(captioner):
            encoded = captioner.encode(batch.regions)
            sampling = Strategy(
                "sample",
                options.max_length,
                samples=options.samples,
                temperature=options.temperature,
                allow_unknown=True,  # what is drawn must be what is differentiated, see the class
            )
            words = captioner.search(encoded, sampling, context.generator).words.flatten(0, 1)  # (B*S, T)
            greedy = None
            if options.baseline == "greedy":
                greedy = captioner.search(encoded, Strategy("greedy", options.max_length)).words[:, 0]  # (B, T')
            if not options.dropout:
                decoded = captioner.decode(encoded, words)
        if options.dropout:
            decoded = captioner.decode(captioner.encode(batch.regions), words)
        advantage, watched = self._advantages(words, greedy, batch, images)
        losses = -advantage.unsqueeze(1) * decoded.word_log_probs(words)  # (B*S, T)
        drawn = decoded.mask.clone()
        drawn[:, options.max_length :] = False  # the end that cut a long sample short
        return {"self_critical": masked_mean(losses, drawn), **watched}

    def _advantages(
        self, words: Tensor, greedy: Tensor | None, batch: Any, images: int
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Return r(sample) - r(baseline), (B*S,), and what to watch."""
        samples = self.options.samples
        rows = torch.arange(images, device=words.device)
        image_of = rows.repeat_interleave(samples)
        scored = words
        if greedy is not None:
            longest = max(words.shape[1], greedy.shape[1])
            scored = torch.cat([_padded(words, longest), _padded(greedy, longest)])
            image_of = torch.cat([image_of, rows])
        reward, parts = self._rewards[0](scored, image_of, batch)
        sampled = reward[: len(words)].view(images, samples)
        if greedy is not None:
            baseline = reward[len(words) :].unsqueeze(1)
        else:
            baseline = (sampled.sum(1, keepdim=True) - sampled) / (samples - 1)
        watched = {f"_reward_{name}": part[: len(words)].mean() for name, part in parts.items()}
        watched["_reward"] = sampled.mean()
        watched["_baseline"] = baseline.mean()
        return (sampled - baseline).flatten(), watched


def _padded(words: Tensor, length: int) -> Tensor:
    return torch.nn.functional.pad(words, (0, length - words.shape[1]), value=PAD)
