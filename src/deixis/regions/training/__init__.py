"""How the network of ``lite`` is trained."""
