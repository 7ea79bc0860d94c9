"""ONNX Runtime's OrtValue."""

import onnxruntime as ort
from onnxruntime.capi.onnxruntime_pybind11_state import OrtValue
from hooks import data_ptr as address

VENV, PIP = "onnx", ["numpy==2.4.6", "onnxruntime==1.31.1"]
FAULTS = {"import raw offset": "ignores byte_offset"}


def make(array):
    """With memory of ONNX Runtime: ortvalue_from_numpy borrows NumPy's, and only the Python object
    references that."""
    made = ort.OrtValue.ortvalue_from_shape_and_type(array.shape, array.dtype.type)
    made.update_inplace(array)
    return made._ortvalue


def exporter(x):
    return x


def take(tensor):
    return OrtValue.from_dlpack(tensor.__dlpack__())  # as its Python layer does


def values(x):
    return x.numpy()
