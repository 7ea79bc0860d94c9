/* A program of kernels in PTX, executed on the host: ptx.cpp. */
#ifndef C_TESTS_STANDIN_PROGRAM_H_
#define C_TESTS_STANDIN_PROGRAM_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

enum { PROGRAM_THREADS = 256, PROGRAM_ARGUMENT = 960 };

typedef struct program program;

/* Memory that kernels reach: addresses from low to below high, and where its bytes are. */
typedef struct program_range {
  uint64_t low, high;
  unsigned char *bytes;
} program_range;
/* Finds the memory at an address; 0: there is none. */
typedef int program_memory(void *of, uint64_t address, program_range *found);

/* NULL: the text is not understood; `wrong` says why. */
program *program_new(const char *text, char wrong[200]);
void program_end(program *self);
/* The number of a kernel, or -1. */
int program_kernel(const program *self, const char *name);
/* Runs the first `blocks` of a grid, of PROGRAM_THREADS threads each, with an argument of PROGRAM_ARGUMENT
 * bytes. Returns NULL or what is wrong: an address that is not aligned or not in memory, shared memory that is read
 * but was not written, a race on it, a barrier that not all threads reach, no end. */
const char *program_run(program *self, int kernel, unsigned blocks, unsigned grid, const void *argument,
                        program_memory *memory, void *of);
/* The text of an instruction, NULL after the last one, and whether it was executed. */
const char *program_instruction(const program *self, unsigned number, int *executed);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
