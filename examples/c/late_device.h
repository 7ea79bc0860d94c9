/* A test device, for examples without hardware: its memory is the host's, and a stream executes its
 * work only when a call waits. dlrs_backend_set makes it a device like others. */
#ifndef LATE_DEVICE_H_
#define LATE_DEVICE_H_
#include <dlpack/dlpack_rs.h>
#include <stdlib.h>
#include <string.h>

typedef struct late_point { /* a stream's position when an event was recorded */
  struct late_stream *on;
  int reached;
} late_point;
typedef struct late_step { /* a copy, a point to reach, or one to wait for */
  void *dst;
  const void *src;
  size_t nbytes;
  late_point *reach, *wait;
} late_step;
typedef struct late_stream {
  late_step steps[64];
  int done, given;
} late_stream;
typedef struct late_event { /* waits are for the point, even if the event is recorded again */
  late_point points[16], *at;
  int recorded;
} late_event;

static late_stream late_default;

static late_step *late_give(void *stream) {
  late_stream *on = stream ? stream : &late_default;
  return &on->steps[on->given++ % 64];
}

static void late_run(late_stream *on, const late_point *until) {
  while (on->done < on->given && (until == NULL || !until->reached)) {
    late_step *it = &on->steps[on->done % 64];
    if (it->wait != NULL) late_run(it->wait->on, it->wait);
    else if (it->reach != NULL) it->reach->reached = 1;
    else memcpy(it->dst, it->src, it->nbytes);
    ++on->done;
  }
}

static int late_alloc(void *context, DLDevice device, uint64_t nbytes, uint64_t align, void *stream,
                      void **out, dlrs_fault *fault) {
  (void)context, (void)device, (void)stream, (void)fault;
  *out = aligned_alloc(align, (nbytes + align - 1) / align * align);
  return *out ? DLRS_OK : DLRS_NOMEM;
}

static int late_free(void *context, DLDevice device, void *data, uint64_t nbytes, uint64_t align,
                     void *stream, dlrs_fault *fault) {
  (void)context, (void)device, (void)nbytes, (void)align, (void)stream, (void)fault;
  free(data);
  return DLRS_OK;
}

static int late_copy(void *context, DLDevice device, const dlrs_byte_plan *plan, void *stream,
                     dlrs_fault *fault) {
  (void)context, (void)device, (void)fault;
  if (plan->ndim != 0) return DLRS_UNSUPPORTED;
  *late_give(stream) =
      (late_step){.dst = plan->dst, .src = plan->src, .nbytes = plan->item_nbytes};
  return DLRS_OK;
}

static int late_sync(void *context, DLDevice device, void *stream, dlrs_fault *fault) {
  (void)context, (void)device, (void)fault;
  late_run(stream ? stream : &late_default, NULL);
  return DLRS_OK;
}

static int late_stream_create(void *context, DLDevice device, void **out, dlrs_fault *fault) {
  (void)context, (void)device, (void)fault;
  *out = calloc(1, sizeof(late_stream));
  return *out ? DLRS_OK : DLRS_NOMEM;
}

static int late_event_create(void *context, DLDevice device, void **out, dlrs_fault *fault) {
  (void)context, (void)device, (void)fault;
  *out = calloc(1, sizeof(late_event));
  return *out ? DLRS_OK : DLRS_NOMEM;
}

static int late_destroy(void *context, DLDevice device, void *handle, dlrs_fault *fault) {
  (void)context, (void)device, (void)fault;
  free(handle);
  return DLRS_OK;
}

static int late_record(void *context, DLDevice device, void *event, void *stream,
                       dlrs_fault *fault) {
  (void)context, (void)device, (void)fault;
  late_event *it = event;
  it->at = &it->points[it->recorded++ % 16];
  *it->at = (late_point){.on = stream ? stream : &late_default};
  *late_give(stream) = (late_step){.reach = it->at};
  return DLRS_OK;
}

static int late_wait(void *context, DLDevice device, void *event, void *stream,
                     dlrs_fault *fault) {
  (void)context, (void)device, (void)fault;
  *late_give(stream) = (late_step){.wait = ((late_event *)event)->at};
  return DLRS_OK;
}

static int late_event_sync(void *context, DLDevice device, void *event, dlrs_fault *fault) {
  (void)context, (void)device, (void)fault;
  late_run(((late_event *)event)->at->on, ((late_event *)event)->at);
  return DLRS_OK;
}

static const dlrs_backend late_device = {
    .struct_size = sizeof(dlrs_backend),
    .name = "late",
    .alloc = late_alloc,
    .free = late_free,
    .copy = late_copy,
    .stream_sync = late_sync,
    .stream_create = late_stream_create,
    .stream_destroy = late_destroy,
    .event_create = late_event_create,
    .event_destroy = late_destroy,
    .event_record = late_record,
    .event_wait = late_wait,
    .event_sync = late_event_sync,
};
#endif
