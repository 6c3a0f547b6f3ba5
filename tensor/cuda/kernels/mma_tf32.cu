#include "mma.cuh"

PRODUCTS(mma_tf32, TF32)
