import torch
from capsule import Managed, say

x = torch.ones(3, 4)
capsule = x.__dlpack__(max_version=(1, 0))
x.resize_(12)
shape = list(Managed(capsule).shape)
say(shape != [3, 4], f"resize_ of the source changed the exported shape from [3, 4] to {shape}")
