"""What is measured here is trained as in the tests of training."""

from tests.training.conftest import grid_store, photos, recipe_file, small_recipe

__all__ = ["grid_store", "photos", "recipe_file", "small_recipe"]
