/* Read-only data: marked in the versioned struct, never exported through the legacy one. */
#include <dlpack/dlpack_rs.h>
#include <stdio.h>

static const float table[4] = {1, 2, 3, 4};

int main(void) {
  dlrs_error error = {.struct_size = sizeof error};
  const int64_t shape[] = {4};
  const DLTensor description = {.data = (void *)table,
                                .device = {kDLCPU, 0},
                                .ndim = 1,
                                .dtype = {kDLFloat, 32, 1},
                                .shape = (int64_t *)shape};
  DLManagedTensorVersioned *tensor = NULL, *second = NULL, *writable = NULL;
  DLManagedTensor *legacy = NULL;

  // [quote:read_only]
  /* Constant data: the flag tells every consumer; NULL for "nothing to free". */
  if (dlrs_tensor_wrap(&description, DLPACK_FLAG_BITMASK_READ_ONLY, NULL, NULL, &tensor, &error))
    goto failed;

  /* The legacy struct has no flags, so it is refused by default... */
  if (dlrs_to_legacy_take(&tensor, DLRS_LEGACY_REFUSE, &legacy, &error) == DLRS_READ_ONLY)
    printf("%s\n", error.message);

  /* ...and given a copy where the consumer may write: DLRS_LEGACY_COPY. */
  if (dlrs_retain(tensor, &second, &error)) goto failed; /* keep ours, too */
  if (dlrs_to_legacy_take(&second, DLRS_LEGACY_COPY, &legacy, &error)) goto failed;

  /* Somebody else's tensor that you have to write to: copied only if it is read-only. */
  const dlrs_import_options options = {.struct_size = sizeof options, .writable = 1};
  if (dlrs_import_take(&tensor, &options, &writable, &error)) goto failed;
  // [/quote]
  printf("legacy is a copy: %s\n", legacy->dl_tensor.data == (void *)table ? "no" : "yes");
  printf("flags of what was imported: %llu\n", (unsigned long long)writable->flags);
  legacy->deleter(legacy);
  dlrs_release(writable);
  return 0;
failed:
  fprintf(stderr, "%s\n", error.message);
  return 1;
}
