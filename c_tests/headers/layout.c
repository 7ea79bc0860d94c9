/*
 * Where every member of every DLPack struct lies, as constants: those of the installed
 * dlpack_rs_layout.h, which are written down by hand from the rules of the C ABI, independent of
 * the generator; and of our own headers, that they are of the newest version.
 */
#include HEADER
#define DLRS_LAYOUT_MINIMUM 103
#include "dlpack_rs_layout.h"

DLRS_LAYOUT_CHECK(release, DLRS_LAYOUT_VERSION == 103, "our headers are DLPack 1.3");

/* The 64-bit numbers that documents quote. */
#if UINTPTR_MAX > 0xFFFFFFFFu
DLRS_LAYOUT_CHECK(tensor_64, sizeof(DLTensor) == 48, "DLTensor");
DLRS_LAYOUT_CHECK(managed_64, sizeof(DLManagedTensor) == 64, "DLManagedTensor");
DLRS_LAYOUT_CHECK(versioned_64, sizeof(DLManagedTensorVersioned) == 80, "versioned");
DLRS_LAYOUT_CHECK(api_header_64, sizeof(DLPackExchangeAPIHeader) == 16, "DLPackExchangeAPIHeader");
DLRS_LAYOUT_CHECK(api_64, sizeof(DLPackExchangeAPI) == 56, "DLPackExchangeAPI");
#endif
