"""Sealed results: arrays that somebody negated or exchanged are refused by every export."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from armid.cli import application
from support import identified


@pytest.fixture(scope="module")
def stored(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("sealed") / "result"
    identified.trusted().save(folder)
    return folder


def tampered(stored: Path, folder: Path, harm: str) -> Path:
    """A copy of the result with some of its numbers changed, as a zip that is in order."""
    folder.mkdir()
    for path in stored.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    with np.load(stored / "result.npz") as file:
        arrays = {name: file[name] for name in file.files}
    numbers = {
        name: x for name, x in arrays.items() if x.dtype.kind == "f" and x.ndim and x.size > 1 and np.any(x != 0.0)
    }
    if harm == "negated":
        arrays |= {name: -x for name, x in numbers.items()}
    else:
        first, second = next((a, b) for a in numbers for b in numbers if a < b and numbers[a].shape == numbers[b].shape)
        arrays[first], arrays[second] = arrays[second], arrays[first]
    np.savez_compressed(folder / "result.npz", **arrays)
    return folder


@pytest.mark.parametrize("harm", ["negated", "exchanged"])
@pytest.mark.parametrize("target", ["urdf", "mjcf", "json", "python", "c", "matlab"])
def test_no_export_of_tampered_arrays(target, harm, stored, tmp_path):
    folder = tampered(stored, tmp_path / "result", harm)
    for more in ((), ("--force",)):
        words = ["export", str(folder), "--to", target, "--out", str(tmp_path / "out"), *more]
        done = CliRunner().invoke(application(), words)
        assert done.exit_code == 1, done.output
        assert done.stderr.startswith("armid: ")
        assert not (tmp_path / "out").exists()
