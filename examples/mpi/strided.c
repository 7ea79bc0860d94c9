/*
 * Two MPI ranks exchange strided tensors without packing them: an MPI datatype is made from shape
 * and strides, so that MPI itself gathers on one side and scatters on the other.
 */
#include <dlpack/dlpack_rs.h>
#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>

// [quote:type]
/* The MPI datatype of a tensor's elements in row-major order, from its element (0, ..., 0): one
 * vector of vectors for each dimension, whose steps are in bytes and may be negative. */
static int type_of(const DLTensor *tensor, MPI_Datatype *out) {
  const MPI_Aint itemsize = tensor->dtype.bits / 8 * tensor->dtype.lanes;
  MPI_Datatype type, outer;
  if (tensor->dtype.bits % 8 != 0) return MPI_ERR_TYPE; /* packed elements have no address */
  int failed = MPI_Type_contiguous((int)itemsize, MPI_BYTE, &type);
  for (int32_t d = tensor->ndim - 1; d >= 0 && !failed; --d) {
    if (tensor->shape[d] > INT_MAX) failed = MPI_ERR_COUNT;
    if (!failed) {
      failed = MPI_Type_create_hvector((int)tensor->shape[d], 1,
                                       (MPI_Aint)tensor->strides[d] * itemsize, type, &outer);
    }
    MPI_Type_free(&type);
    if (!failed) type = outer;
  }
  if (failed) return failed;
  *out = type;
  return MPI_Type_commit(out);
}
// [/quote]

static void *first(const DLTensor *tensor) { return (char *)tensor->data + tensor->byte_offset; }

/* rank 0 sends; rank 1 receives into a tensor of the same shape and dtype, of any strides */
static int transfer(int rank, DLManagedTensorVersioned *tensor, dlrs_error *error) {
  MPI_Datatype type;
  if (dlrs_validate_managed(tensor, DLRS_LEVEL_STRICT, error) != DLRS_OK) return 1;
  int failed = type_of(&tensor->dl_tensor, &type);
  if (failed) return failed;
  failed = rank == 0 ? MPI_Send(first(&tensor->dl_tensor), 1, type, 1, 7, MPI_COMM_WORLD)
                     : MPI_Recv(first(&tensor->dl_tensor), 1, type, 0, 7, MPI_COMM_WORLD,
                                MPI_STATUS_IGNORE);
  MPI_Type_free(&type);
  return failed;
}

/* A view replaces its base, which the view references. */
#define REPLACE(base, view, ...) \
  do { \
    DLManagedTensorVersioned *viewed = NULL; \
    if (view(base, __VA_ARGS__, &viewed, &error) != DLRS_OK) goto failed; \
    dlrs_release(base); \
    base = viewed; \
  } while (0)

int main(int argc, char **argv) {
  dlrs_error error = {.struct_size = sizeof error};
  DLManagedTensorVersioned *tensor = NULL, *expected = NULL, *whole = NULL;
  const DLDevice cpu = {kDLCPU, 0};
  int rank, size, equal = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  strcpy(error.message, "MPI failed, or there are not two ranks");
  if (size != 2) goto failed;

  /* The sent tensor, with which the receiver compares: (4, 3, 5) int16, axes 0 and 2 swapped, the
   * first axis reversed, every second of the last. */
  const int64_t shape[] = {4, 3, 5};
  const DLDataType int16 = {kDLInt, 16, 1};
  if (dlrs_tensor_new(shape, 3, int16, cpu, NULL, &expected, &error) != DLRS_OK) goto failed;
  int16_t *values = expected->dl_tensor.data;
  for (int i = 0; i < 60; ++i) values[i] = (int16_t)i;
  REPLACE(expected, dlrs_view_transpose, 0, 2);
  REPLACE(expected, dlrs_view_flip, 0);
  REPLACE(expected, dlrs_view_slice, 2, 0, 4, 2); /* now (5, 3, 2) */

  if (rank == 0) {
    if (transfer(rank, expected, &error) != 0) goto failed;
    printf("rank 0 sent strides (%d, %d, %d)\n", (int)expected->dl_tensor.strides[0],
           (int)expected->dl_tensor.strides[1], (int)expected->dl_tensor.strides[2]);
    fflush(stdout);
    MPI_Barrier(MPI_COMM_WORLD);
  } else {
    /* Received column-major, within a larger tensor whose other elements are unchanged. */
    const int64_t larger[] = {2, 4, 5};
    const int16_t mark = -1;
    if (dlrs_tensor_new(larger, 3, int16, cpu, NULL, &whole, &error) != DLRS_OK ||
        dlrs_fill(whole, &mark, int16, NULL, &error) != DLRS_OK ||
        dlrs_retain(whole, &tensor, &error) != DLRS_OK)
      goto failed;
    REPLACE(tensor, dlrs_view_slice, 1, 1, 4, 1);
    REPLACE(tensor, dlrs_view_transpose, 0, 2);
    if (transfer(rank, tensor, &error) != 0) goto failed;
    if (dlrs_equal(tensor, expected, DLRS_EQUAL_BITS, &equal, &error) != DLRS_OK) goto failed;
    MPI_Barrier(MPI_COMM_WORLD);
    const int16_t *around = whole->dl_tensor.data;
    int kept = 0;
    for (int i = 0; i < 40; ++i) kept += around[i] == -1;
    printf("rank 1 received strides (%d, %d, %d): %s, %d elements around are as they were\n",
           (int)tensor->dl_tensor.strides[0], (int)tensor->dl_tensor.strides[1],
           (int)tensor->dl_tensor.strides[2], equal ? "equal" : "DIFFERENT", kept);
  }
  dlrs_release(tensor);
  dlrs_release(whole);
  dlrs_release(expected);
  MPI_Finalize();
  return rank == 1 && !equal;
failed:
  fprintf(stderr, "rank %d: %s\n", rank, error.message);
  MPI_Abort(MPI_COMM_WORLD, 1);
  return 1;
}
