"""Recipes, stages, the loop, checkpoints and schedules."""
