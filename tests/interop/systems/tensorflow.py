"""TensorFlow. Memory that is not 64-byte aligned kills the process at the first operation."""

import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import tensorflow as tf  # noqa: E402

VENV, PIP = "tensorflow", ["numpy==2.4.6", "tensorflow-cpu==2.21.0"]
FAULTS = {"import unaligned": "takes unaligned memory, then ends the process"}


def make(array):
    return tf.constant(array)


def take(tensor):
    return tf.experimental.dlpack.from_dlpack(tensor.__dlpack__())


def values(x):
    return (x + tf.zeros_like(x)).numpy()  # an operation, which may crash


def address(x):
    from ours import Facts

    return Facts(tf.experimental.dlpack.to_dlpack(x)).address
