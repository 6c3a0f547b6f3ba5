#include "mma.cuh"

PRODUCTS(mma_split, SPLIT)
