import paddle
from capsule import say

device = paddle.ones([3]).__dlpack_device__()
say(device != (1, 0), f"__dlpack_device__() of a CPU tensor is {device}, not (1, 0)")
