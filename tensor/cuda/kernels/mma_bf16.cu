#include "mma.cuh"

PRODUCTS(mma_bf16, HALF)
