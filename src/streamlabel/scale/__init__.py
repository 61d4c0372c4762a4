"""The same mathematics past memory, past one machine and on a GPU: row blocks, Dask, PyTorch."""
