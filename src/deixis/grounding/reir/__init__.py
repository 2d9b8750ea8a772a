"""ReIR: relation-guided, iterative refinement of regions."""
