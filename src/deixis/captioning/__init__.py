"""The captioner: region encoder, two-LSTM decoder, attentions, search and objectives."""

from deixis.captioning.answer import Pointing, reground
from deixis.captioning.as_grounder import CaptionerGrounder
from deixis.captioning.captioner import Captioner, ScheduledSampling
from deixis.captioning.config import AttentionConfig, CaptionerConfig, DecoderConfig, EncoderConfig, InputSizes
from deixis.captioning.decoded import Decoded
from deixis.captioning.decoder import Attend
from deixis.captioning.encoder import Encoded
from deixis.captioning.fluent import bad_endings, fluent_search
from deixis.captioning.strategy import Generated, Strategy

__all__ = [
    "Attend",
    "AttentionConfig",
    "Captioner",
    "CaptionerConfig",
    "CaptionerGrounder",
    "Decoded",
    "DecoderConfig",
    "Encoded",
    "EncoderConfig",
    "Generated",
    "InputSizes",
    "Pointing",
    "ScheduledSampling",
    "Strategy",
    "bad_endings",
    "fluent_search",
    "reground",
]
