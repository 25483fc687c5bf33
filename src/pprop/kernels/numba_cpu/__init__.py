"""The CPU backend: numba kernels in which every sum is made by one thread in a fixed order.

Run r of a batch therefore has the same bits whatever the other runs are and however many threads work. Work is shared
as tasks of (run, block of rows); the size of a block never depends on the number of threads.
"""
