"""One array in two processes: by the name of shared memory, and by pickle without a copy."""

import multiprocessing
import pickle
import sys
from multiprocessing.shared_memory import SharedMemory

import dlpack_rs


def change(name):
    # [quote:attach]
    untracked = {"track": False} if sys.version_info >= (3, 13) else {}
    memory = SharedMemory(name, **untracked)
    grid = dlpack_rs.asarray(memory.buf[:24]).view("float32").reshape((2, 3))
    # [/quote]
    grid[0] = dlpack_rs.asarray([7, 8, 9], dtype="float32")
    del grid  # the tensor exports the memory: close() refuses until it is gone
    memory.close()


def by_name():
    # [quote:create]
    memory = SharedMemory(create=True, size=24)
    grid = dlpack_rs.asarray(memory.buf[:24]).view("float32").reshape((2, 3))
    # [/quote]
    grid[:] = dlpack_rs.asarray([[0, 1, 2], [3, 4, 5]], dtype="float32")
    # [quote:many]
    columns = grid.permute((1, 0))  # other shape and strides, the same memory
    odd = grid[:, 1::2]
    # [/quote]
    child = multiprocessing.get_context("spawn").Process(target=change, args=(memory.name,))
    child.start()
    child.join()
    print(child.exitcode, columns.tolist(), odd.tolist())
    del grid, columns, odd
    memory.close()
    memory.unlink()


def out_of_band():
    # [quote:pickle]
    grid = dlpack_rs.asarray([[0, 1, 2], [3, 4, 5]], dtype="float32")
    buffers = []
    data = pickle.dumps(grid, protocol=5, buffer_callback=buffers.append)  # no elements in data
    # Send data, and each buffer by whatever moves bytes best. The receiver has put them somewhere:
    received = [bytearray(buffer.raw()) for buffer in buffers]
    again = pickle.loads(data, buffers=received)  # a tensor in that memory
    # [/quote]
    again[0] = dlpack_rs.asarray([7, 8, 9], dtype="float32")
    print(len(data) < 300, again.tolist(), memoryview(received[0]).cast("f")[0])


if __name__ == "__main__":
    by_name()
    out_of_band()
