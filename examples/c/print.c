/* Print any tensor, whatever its dtype, its strides, its length. */
#include <dlpack/dlpack_rs.h>
#include <stdio.h>
#include <stdlib.h>

// [quote:print]
/* Prints a tensor of any size: asks how long the text is, then makes room for it. */
static int print(const DLManagedTensorVersioned *tensor, dlrs_error *error) {
  size_t nbytes = 0;
  dlrs_status status = dlrs_managed_to_string(tensor, NULL, NULL, 0, &nbytes, error);
  if (status != DLRS_OK && status != DLRS_BUF_SMALL) return status;
  char *text = malloc(nbytes + 1); /* the NUL is not counted */
  if (text == NULL) return DLRS_NOMEM;
  status = dlrs_managed_to_string(tensor, NULL, text, nbytes + 1, NULL, error);
  if (status == DLRS_OK) puts(text);
  free(text);
  return status;
}
// [/quote]

int main(void) {
  dlrs_error error = {.struct_size = sizeof error};
  DLManagedTensorVersioned *tensor = NULL, *view = NULL;
  int64_t shape[] = {100, 20}, turned_shape[] = {2, 3}, turned_strides[] = {1, 20};
  if (dlrs_tensor_new(shape, 2, (DLDataType){kDLFloat, 64, 1}, (DLDevice){kDLCPU, 0}, NULL, &tensor,
                      &error) != DLRS_OK)
    goto failed;
  double *values = tensor->dl_tensor.data;
  for (int i = 0; i < 2000; ++i) values[i] = i * 0.25;

  /* Large: only the edges are shown. */
  if (print(tensor, &error) != DLRS_OK) goto failed;

  /* A corner of it, transposed by strides. */
  DLTensor turned = tensor->dl_tensor;
  turned.shape = turned_shape;
  turned.strides = turned_strides;
  if (dlrs_tensor_wrap(&turned, 0, NULL, NULL, &view, &error) != DLRS_OK ||
      print(view, &error) != DLRS_OK)
    goto failed;
  dlrs_release(view);
  dlrs_release(tensor);
  return 0;
failed:
  fprintf(stderr, "%s\n", error.message);
  dlrs_release(view);
  dlrs_release(tensor);
  return 1;
}
