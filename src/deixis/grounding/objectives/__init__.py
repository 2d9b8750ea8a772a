"""What grounders are trained on; one file each."""
