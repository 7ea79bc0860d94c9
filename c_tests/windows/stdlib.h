/* Functions missing from the C run-time of Windows; inject.c defines them. */
#ifndef C_TESTS_WINDOWS_STDLIB_H_
#define C_TESTS_WINDOWS_STDLIB_H_

#include_next <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif
int posix_memalign(void **out, size_t alignment, size_t nbytes);
void *aligned_alloc(size_t alignment, size_t nbytes);
#ifdef __cplusplus
}
#endif

#endif
