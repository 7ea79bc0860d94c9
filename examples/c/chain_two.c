/* Run callbacks when a tensor is freed: chained to the deleter, last in, first out. */
#include <dlpack/dlpack_rs.h>
#include <stdio.h>

static void say(void *context) { printf("%s\n", (const char *)context); }

int main(void) {
  dlrs_error error = {.struct_size = sizeof error};
  const int64_t shape[] = {1000};
  const DLDataType uint8 = {kDLUInt, 8, 1};
  const DLDevice cpu = {kDLCPU, 0};
  DLManagedTensorVersioned *tensor = NULL, *second = NULL;
  if (dlrs_tensor_new(shape, 1, uint8, cpu, NULL, &tensor, &error) != DLRS_OK) goto failed;

  // [quote:chain]
  /* Before the data is freed: flush, unregister, unlock. After it: report, free the pool. */
  if (dlrs_attach(tensor, say, "2. unregister the buffer", DLRS_BEFORE_FREE, &error) != DLRS_OK ||
      dlrs_attach(tensor, say, "1. flush the buffer", DLRS_BEFORE_FREE, &error) != DLRS_OK ||
      dlrs_attach(tensor, say, "3. give the pool back", DLRS_AFTER_FREE, &error) != DLRS_OK)
    goto failed;
  // [/quote]

  /* A second reference: the callbacks wait for the last one. */
  if (dlrs_retain(tensor, &second, &error) != DLRS_OK) goto failed;
  printf("references: %lld\n", (long long)dlrs_ref_count(tensor));
  dlrs_release(tensor);
  puts("one reference left");
  second->deleter(second);
  return 0;
failed:
  fprintf(stderr, "%s\n", error.message);
  dlrs_release(tensor);
  return 1;
}
