/* Uses DLPack's structs and nothing of the library. */
#include <dlpack/dlpack.h>

int32_t dimensions(const DLTensor *tensor) { return tensor->ndim; }
