"""Files to tables: each kind of file becomes named columns, delivered in pieces."""

from armid.logs.readers.files import open_table
from armid.logs.readers.table import Layout, Table, TableFile

__all__ = ["Layout", "Table", "TableFile", "open_table"]
