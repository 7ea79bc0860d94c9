/* Tensors as text. P14 of the catalogue is here. */
#include "harness.h"

static char text[1 << 16];

/* Buffers of every size up to the whole text: truncated, terminated, and nothing written behind. */
static void every_size(const DLTensor *tensor) {
  size_t whole = 0, capacity;
  WORKS(dlrs_tensor_to_string(tensor, 0, NULL, NULL, 0, &whole, ERR));
  CHECK(whole > 0 && whole < sizeof text);
  WORKS(dlrs_tensor_to_string(tensor, 0, NULL, text, whole + 1, NULL, ERR));
  EQUAL(strlen(text), whole);
  for (capacity = 0; capacity <= whole; ++capacity) {
    char *end = (char *)t_before_guard(capacity);
    size_t nbytes = 0;
    REJECTS(BUF_SMALL, 5, ANY, -1,
            dlrs_tensor_to_string(tensor, 0, NULL, end, capacity, &nbytes, ERR));
    EQUAL(nbytes, whole);
    EQUAL(t_error.limit, (int64_t)whole + 1);
    if (capacity > 0) CHECK(strlen(end) == capacity - 1 && strncmp(end, text, capacity - 1) == 0);
    t_guards_free();
  }
}

/* P14: 64 dimensions of INT64_MIN, and of INT64_MAX. */
static void p14(void) {
  int64_t shape[64], strides[64];
  DLTensor tensor = t_describe(t_guard(), F32, 64, shape, strides);
  DLManagedTensorVersioned managed;
  size_t nbytes = 0;
  int i, which;
  for (which = 0; which < 2; ++which) {
    for (i = 0; i < 64; ++i) shape[i] = strides[i] = which ? INT64_MAX : INT64_MIN;
    WORKS(dlrs_tensor_to_string(&tensor, UINT64_MAX, NULL, text, sizeof text, &nbytes, ERR));
    CHECK(nbytes == strlen(text) && strstr(text, which ? "9223372036854775807" : "-9223372036854775808") != NULL);
    managed = t_managed(tensor, UINT64_MAX);
    WORKS(dlrs_managed_to_string(&managed, NULL, text, sizeof text, &nbytes, ERR));
  }
}

int main(void) {
  t_tensor good;
  DLTensor *bare = &good.managed.dl_tensor;
  dlrs_print_options options = DLRS_INIT(dlrs_print_options);
  size_t nbytes = 77;
  t_make(&good);
  WORKS(dlrs_tensor_to_string(bare, 0, NULL, text, sizeof text, &nbytes, ERR));
  EQUAL(nbytes, strlen(text));
  CHECK(strstr(text, "[[0.0, 1.0, 2.0],\n [3.0, 4.0, 5.0]]") != NULL && strstr(text, "shape=(2, 3)") != NULL);
  CHECK(strstr(text, "float32") != NULL && strstr(text, "cpu") != NULL);
  CHECK(strstr(text, "0x") == NULL);
  WORKS(dlrs_managed_to_string(&good.managed, &options, text, sizeof text, &nbytes, ERR));
  CHECK(strstr(text, "[[0.0, 1.0, 2.0]") != NULL);
  t_context = "every size";
  every_size(bare);
  t_context = "P14";
  p14();
  t_context = "";
  /* Memory of a device is never read. */
  bare->data = t_guard();
  bare->device = t_device(kDLCUDA, 0);
  WORKS(dlrs_tensor_to_string(bare, 0, NULL, text, sizeof text, &nbytes, ERR));
  CHECK(strstr(text, "cuda:0") != NULL);
  bare->data = NULL;
  WORKS(dlrs_tensor_to_string(bare, 0, NULL, text, sizeof text, &nbytes, ERR));
  t_make(&good);
  t_watch(&good, sizeof good);
  REJECTS(NULL_ARG, 1, ANY, -1, dlrs_tensor_to_string(NULL, 0, NULL, text, 9, &nbytes, ERR));
  REJECTS(NULL_ARG, 1, ANY, -1, dlrs_managed_to_string(NULL, NULL, text, 9, &nbytes, ERR));
  REJECTS(BUF_SMALL, 4, ANY, -1,
          dlrs_managed_to_string(&good.managed, NULL, text, 9, &nbytes, ERR));
  REJECTS(BAD_ARG, 5, ANY, -1, dlrs_tensor_to_string(bare, 0, NULL, text, SIZE_MAX, &nbytes, ERR));
  options.struct_size = 4;
  REJECTS(STRUCT_SIZE, 3, STRUCT_SIZE, -1,
          dlrs_tensor_to_string(bare, 0, &options, text, sizeof text, &nbytes, ERR));
  REJECTS(STRUCT_SIZE, 2, STRUCT_SIZE, -1,
          dlrs_managed_to_string(&good.managed, &options, text, sizeof text, &nbytes, ERR));
  t_unwatch();
  good.managed.version.major = 2;
  REJECTS(VERSION, 1, VERSION, -1,
          dlrs_managed_to_string(&good.managed, NULL, text, sizeof text, &nbytes, ERR));
  bare->ndim = 65;
  REJECTS(NDIM, 1, NDIM, -1, dlrs_tensor_to_string(bare, 0, NULL, text, sizeof text, &nbytes, ERR));
  return t_close();
}
