"""Optimizers and gradient clipping, as a recipe names them."""

from __future__ import annotations

import torch
from torch import nn

from deixis.errors import BadRecipeError
from deixis.training.recipe import ClipRecipe, OptimizerRecipe


def make_optimizer(recipe: OptimizerRecipe, module: nn.Module) -> torch.optim.Optimizer:
    """Return the optimizer for everything in ``module`` that learns. Matrices decay, biases and norms do not."""
    learned = [parameter for parameter in module.parameters() if parameter.requires_grad]
    if not learned:
        raise BadRecipeError("nothing in this stage learns: every parameter is frozen")
    groups = [
        {"params": [p for p in learned if p.dim() >= 2], "weight_decay": recipe.weight_decay},
        {"params": [p for p in learned if p.dim() < 2], "weight_decay": 0.0},
    ]
    groups = [group for group in groups if group["params"]]
    if recipe.kind == "sgd":
        return torch.optim.SGD(groups, lr=recipe.lr, momentum=recipe.momentum)
    kind = torch.optim.Adam if recipe.kind == "adam" else torch.optim.AdamW
    return kind(groups, lr=recipe.lr, betas=recipe.betas, eps=recipe.eps, fused=True)


def clip_gradients(recipe: ClipRecipe, module: nn.Module) -> float:
    """Clip the gradients in place and return their norm before clipping."""
    gradients = [parameter.grad for parameter in module.parameters() if parameter.grad is not None]
    if not gradients:
        raise BadRecipeError("no parameter received a gradient: the objectives of this stage do not train the model")
    norm = torch.nn.utils.get_total_norm(gradients)
    if recipe.by == "norm":
        torch.nn.utils.clip_grads_with_norm_(module.parameters(), recipe.at, norm)
    elif recipe.by == "value":
        torch.nn.utils.clip_grad_value_(module.parameters(), recipe.at)
    return float(norm)
