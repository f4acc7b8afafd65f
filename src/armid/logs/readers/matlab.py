"""MATLAB .mat: version 7.3 as the HDF5 file it is, older ones by their own reader."""

from __future__ import annotations

from pathlib import Path

from armid.errors import InputError
from armid.logs.readers.hdf5 import is_hdf5, open_hdf5
from armid.logs.readers.mat5 import mat5_arrays, mat5_joint_names
from armid.logs.readers.table import ArrayTable, Layout, TableFile, along_time


def open_mat(path: Path, layout: Layout) -> TableFile:
    """Numeric arrays of a .mat, fields of structs as `struct.field`, with time along the rows.

    Raises:
        InputError: damaged, too large once expanded, or nothing numeric in it.
    """
    if is_hdf5(path):
        return open_hdf5(path, layout)
    table = along_time(mat5_arrays(path))
    if not table:
        raise InputError(path, "no numeric arrays", "cell arrays and objects are not read: save plain matrices")
    return ArrayTable(table, joints=mat5_joint_names(path))
