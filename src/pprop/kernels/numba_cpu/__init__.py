"""The CPU backend: numba kernels in which every sum is made by one thread in a fixed order.

The bits of a run therefore depend neither on the other runs of a batch nor on the number of threads. Work is shared
as tasks of (run, block of rows); the size of a block never depends on the number of threads.
"""
