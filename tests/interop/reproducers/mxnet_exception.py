import mxnet
from capsule import say

array = mxnet.nd.ones((3, 4))
print("violated: the process ends where a capsule goes while an exception is raised", flush=True)
try:
    mxnet.nd.to_dlpack_for_write(array), 1 / 0
except ZeroDivisionError:
    say(False, "")
