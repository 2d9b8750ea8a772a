"""A fuzzer: damaged and hostile files against everything that reads a user's file (``python -m benchmarks.fuzz``)."""
