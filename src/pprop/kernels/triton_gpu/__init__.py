"""The GPU backend: triton kernels that draw their masks on the fly, and a trainer of R runs that fuses the epoch.

Sums have a fixed order and nothing is added atomically, so that the same batch gives the same bits every time. With
``TRITON_INTERPRET=1`` in the environment before triton is imported the kernels run on CPU tensors, one program after
another, for tests.
"""
