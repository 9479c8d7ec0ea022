"""FLOPs counted by hand."""


def conv4(side: int) -> tuple[int, int]:
    """FLOPs of Conv-4's forward pass of one image by M N K² H W a layer, and those of its first layer."""
    layers = [2 * 9 * m * 64 * (side // 2**i) ** 2 for i, m in enumerate((3, 64, 64, 64))]
    return sum(layers), layers[0]
