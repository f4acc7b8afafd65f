"""Where work runs: in this process, on processes of this machine, or on a Dask cluster. Dask loads only when asked for."""
