"""Stands for NumPy's build backend while pip downloads its source archive (see run.py)."""
import os
from pathlib import Path


def prepare_metadata_for_build_wheel(folder, config_settings=None):
    version = os.environ["NUMPY_VERSION"]
    place = Path(folder, f"numpy-{version}.dist-info")
    place.mkdir()
    (place / "METADATA").write_text(f"Metadata-Version: 2.1\nName: numpy\nVersion: {version}\n")
    return place.name
