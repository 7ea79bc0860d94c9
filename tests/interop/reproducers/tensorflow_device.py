import tensorflow
from capsule import say

x = tensorflow.constant([1.0])
try:
    x.__dlpack__(dl_device=tuple(map(int, x.__dlpack_device__())))
    say(False, "")
except Exception as error:
    say(True, f"its own device is refused: {type(error).__name__}: {error}")
