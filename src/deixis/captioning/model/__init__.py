"""The captioner: encoder, attentions, decoder."""
