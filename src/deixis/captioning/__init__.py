"""The captioner: region encoder, two-LSTM decoder, attentions, search and objectives."""
