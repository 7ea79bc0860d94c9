import mlx.core
from capsule import say


class Refuses:
    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, **keywords):
        raise BufferError("why it cannot be exported")


try:
    mlx.core.from_dlpack(Refuses())
except Exception as error:
    say(not isinstance(error, BufferError), f"BufferError of the producer became {type(error)}")
