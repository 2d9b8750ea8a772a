"""The captioner: region encoder, two-LSTM decoder, attentions, search and objectives."""

from deixis.captioning.answer import Pointing
from deixis.captioning.as_grounder import CaptionerGrounder
from deixis.captioning.model.captioner import Captioner, ScheduledSampling
from deixis.captioning.model.config import AttentionConfig, CaptionerConfig, DecoderConfig, EncoderConfig
from deixis.captioning.model.decoded import Decoded
from deixis.captioning.model.decoder import Attend
from deixis.captioning.model.encoder import Encoded
from deixis.captioning.search.fluent import bad_endings, fluent_search
from deixis.captioning.search.strategy import Generated, Strategy
from deixis.data.sizes import InputSizes

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
]
