/* libdlpack_rs as the conformance kit judges it; a subject for dlpack_rs-conform. A tensor is a
 * reference to a DLManagedTensorVersioned. */
#include "dlpack_rs.h"
#include "dlpack_rs_conform.h"

typedef DLManagedTensorVersioned managed;

static int32_t make(void *context, const DLTensor *values, uint64_t flags, void **tensor) {
  managed *made = NULL, *locked = NULL;
  (void)context;
  if (dlrs_tensor_new_like(values, NULL, &made, NULL) != 0) return 1;
  *tensor = made;
  if (dlrs_copy_desc(values, 0, &made->dl_tensor, 0, NULL, NULL) != 0) return 1;
  if (flags == 0) return 0;
  if (dlrs_view_read_only(made, &locked, NULL) != 0) return 1;
  dlrs_release(made);
  *tensor = locked;
  return 0;
}

/* [quote:callbacks] */
static int32_t produce(void *context, void *tensor, managed **out) {
  (void)context;
  return dlrs_retain((managed *)tensor, out, NULL);
}
/* [/quote] */

static int32_t produce_legacy(void *context, void *tensor, DLManagedTensor **out) {
  managed *shared = NULL;
  dlrs_status status = dlrs_retain((managed *)tensor, &shared, NULL);
  (void)context;
  if (status == 0) status = dlrs_to_legacy_take(&shared, DLRS_LEGACY_REFUSE, out, NULL);
  dlrs_release(shared);
  return status;
}

static int32_t produce_copy(void *context, void *tensor, managed **out) {
  managed *x = (managed *)tensor;
  (void)context;
  return dlrs_clone(x, x->dl_tensor.device, NULL, out, NULL);
}

static int32_t consume(void *context, managed *foreign, void **tensor) {
  managed *taken = NULL;
  dlrs_status status = dlrs_import_take(&foreign, NULL, &taken, NULL);
  (void)context;
  *tensor = taken;
  return status;
}

static int32_t consume_legacy(void *context, DLManagedTensor *foreign, void **tensor) {
  managed *versioned = NULL;
  int32_t status = dlrs_from_legacy_take(&foreign, 0, &versioned, NULL);
  if (status == 0) status = consume(context, versioned, tensor);
  if (status != 0) dlrs_release(versioned);
  return status;
}

static int32_t read_it(void *context, void *tensor, DLTensor *seen, uint64_t *flags) {
  (void)context;
  *seen = ((managed *)tensor)->dl_tensor;
  *flags = ((managed *)tensor)->flags;
  return 0;
}

static int32_t view(void *context, void *tensor, int32_t kind, void **out) {
  const int64_t twice[3] = {2, 3, 4};
  managed *x = (managed *)tensor, *inner = NULL, *seen = NULL;
  dlrs_status status;
  (void)context;
  if (kind == DLRS_CONFORM_TRANSPOSED)
    status = dlrs_view_permute(x, NULL, 0, &seen, NULL);
  else if (kind == DLRS_CONFORM_BROADCAST)
    status = dlrs_view_expand(x, twice, 3, &seen, NULL);
  else if (kind == DLRS_CONFORM_COLUMNS)
    status = dlrs_view_slice(x, 1, 0, INT64_MAX, 2, &seen, NULL);
  else if (kind == DLRS_CONFORM_REVERSED)
    status = dlrs_view_slice(x, 0, INT64_MAX, INT64_MIN, -1, &seen, NULL);
  else
    status = dlrs_view_slice(x, 0, 1, INT64_MAX, 1, &seen, NULL);
  if (status == 0 && kind == DLRS_CONFORM_INNER) {
    inner = seen;
    status = dlrs_view_slice(inner, 1, 1, INT64_MAX, 1, &seen, NULL);
    dlrs_release(inner);
  }
  *out = seen;
  return status;
}

static void drop(void *context, void *tensor) {
  (void)context;
  dlrs_release((managed *)tensor);
}

/* [quote:subject] */
const dlrs_conform_subject *dlrs_conform_get_subject(void) {
  static dlrs_conform_subject subject;
  subject.struct_size = sizeof subject;
  subject.name = "libdlpack_rs";
  subject.version = dlrs_version_string();
  subject.make = make;
  subject.produce = produce;
  subject.produce_legacy = produce_legacy;
  subject.produce_copy = produce_copy;
  subject.consume = consume;
  subject.consume_legacy = consume_legacy;
  subject.read = read_it;
  subject.view = view;
  subject.drop = drop;
  return &subject;
}
/* [/quote] */
