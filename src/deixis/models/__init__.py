"""What a trained model is: its configuration, weights, names and bundles."""
