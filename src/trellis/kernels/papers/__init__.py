"""The papers' algorithms under their own names: kernels that the default is compared with."""
