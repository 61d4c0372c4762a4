"""Map and map-reduce: serial, threads, processes. The only door to Dask."""
