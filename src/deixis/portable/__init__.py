"""Answers without torch: networks as ONNX files, what writes them, and what answers with them in numpy."""
