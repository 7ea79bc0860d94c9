"""Makes the golden file of tests/print.rs: the value of every pattern of the small float formats,
as the bits of a binary32, by the real ml_dtypes.

    python -m venv v && v/bin/pip install ml_dtypes==0.6.0
    v/bin/python tests/golden/make_ml_dtypes_values.py # rewrites the file beside it
"""

import pathlib

import ml_dtypes
import numpy as np

SMALL = """float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz float8_e5m2
 float8_e5m2fnuz float8_e8m0fnu float6_e2m3fn float6_e3m2fn float4_e2m1fn""".split()
BITS = {"float6_e2m3fn": 6, "float6_e3m2fn": 6, "float4_e2m1fn": 4}

with open(pathlib.Path(__file__).parent / "ml_dtypes_values.txt", "w") as out:
    out.write(f"# ml_dtypes {ml_dtypes.__version__}\n")
    for name in SMALL:
        kind = np.dtype(getattr(ml_dtypes, name))
        every = np.arange(2 ** BITS.get(name, 8), dtype=np.uint8).view(kind).astype(np.float32)
        words = ["nan" if np.isnan(v) else f"{v.view(np.uint32):08x}" for v in every]
        out.write(f"{name} {' '.join(words)}\n")
