import signal

import numpy
import paddle
from capsule import say

tensor = paddle.from_dlpack(paddle.from_dlpack(numpy.ones(64, "f4")))
print("violated: to free a tensor that was taken from a taken tensor does not end", flush=True)
signal.alarm(10)
del tensor
say(False, "")
