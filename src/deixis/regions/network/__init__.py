"""The network of the ``lite`` extractor, from pixels to boxes and features."""
