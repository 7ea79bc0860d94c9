import torch
from capsule import Managed, say

flags = Managed(torch.ones(3).__dlpack__(max_version=(1, 0), copy=True)).flags.value
say(not flags & 2, f"__dlpack__(copy=True) copies, and flags is {flags} without IS_COPIED")
