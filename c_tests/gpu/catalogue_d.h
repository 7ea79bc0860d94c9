/* Shared by the rows of section D of the catalogue. */
#ifndef C_TESTS_GPU_CATALOGUE_D_H_
#define C_TESTS_GPU_CATALOGUE_D_H_

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "gpu.h"

extern const float VALUES[6];
/* The operands of most rows: tensors of device 0, a source and a destination (of zeros) on the host, a
 * stream of device 0. */
extern gpu_tensor A, B;
extern t_tensor H, I;
extern void *S;
void set_up(void);

/* Copies requested from the driver so far; 0 of a real one. */
long copies(void);

/* `planes` images of rows x columns elements are transposed, rows `gap` elements longer than needed on
 * both sides. */
void turned(int from, int to, int bytes, int64_t planes, int64_t rows, int64_t columns, int64_t gap);

/* A matrix of bytes that goes through the pinned buffers, to device 0 and back, transposed. */
void big_make(void);
void big_round(const dlrs_copy_options *up, const dlrs_copy_options *down);

extern const gpu_row copy_rows[], stream_rows[];
extern const size_t copy_rows_n, stream_rows_n;
void random_copies(int seconds);

#endif
