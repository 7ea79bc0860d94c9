/* Memory. Device memory is a file in memory that is mapped twice: at the driver's address, which
 * the host cannot access, and at the stand-in's. It is between red zones: pages that are never
 * accessible, and the rest of its last page, filled with a pattern. */
#include "core.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096, ALIGN = 256, BLOCKS = 8192, QUARANTINE = 512, PATTERN = 0xEB,
       FILLED = 64 << 20 /* larger blocks stay sparse, and 0 */ };

static block *live[BLOCKS];
static int count;
static block *quarantine[QUARANTINE];
static int quarantined;

static size_t pages(size_t nbytes) { return (nbytes + PAGE - 1) / PAGE * PAGE; }

size_t memory_used(int device) {
  size_t used = 0;
  for (int i = 0; i < count; ++i) {
    if (live[i]->device == device && live[i]->kind != REGISTERED && live[i]->kind != PINNED) {
      used += live[i]->nbytes;
    }
  }
  return used;
}

block *block_of(const void *address) {
  const unsigned char *byte = address;
  for (int i = 0; i < count; ++i) {
    if (byte >= live[i]->address && byte < live[i]->address + live[i]->nbytes) return live[i];
  }
  return NULL;
}

block *block_seen(const void *address) {
  const unsigned char *byte = address;
  for (int i = 0; i < count; ++i) {
    const unsigned char *seen = live[i]->alias ? live[i]->alias : live[i]->address;
    if (byte >= seen && byte < seen + live[i]->nbytes) return live[i];
  }
  return NULL;
}

int memory_seen(const block *self, const context *from) {
  if (self->kind != DEVICE_MEMORY) return 1;
  return self->device == from->device && (self->pool || self->context == context_base(from));
}

int freed_before(const void *address) {
  const unsigned char *byte = address;
  for (int i = 0; i < QUARANTINE; ++i) {
    block *old = quarantine[i];
    if (old && byte >= old->map && byte < old->map + old->mapped + 2 * PAGE) return 1;
  }
  return 0;
}

static void account(const block *self, long sign) {
  if (self->kind == DEVICE_MEMORY) {
    stats.device_blocks += sign;
    stats.device_bytes += sign * (long)self->nbytes;
  }
  if (self->kind == PINNED) stats.pinned += sign;
  if (self->kind == MANAGED_MEMORY) stats.managed += sign;
  if (self->kind == REGISTERED) stats.registered += sign;
}

static int add(block *self) {
  if (count == BLOCKS) return E_NOMEM;
  live[count++] = self;
  account(self, 1);
  return OK;
}

/* HIP: reserves another address for kernels than the host's, at the same offset within a page. */
static int see(block *self, size_t into) {
  if (!is_hip) return OK;
  self->alias_map = mmap(NULL, self->alias_mapped = pages(into + self->nbytes), PROT_NONE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  self->alias = self->alias_map + into;
  return self->alias_map == MAP_FAILED ? E_NOMEM : OK;
}

/* Maps a block: a red page, the block at the end of its pages, a red page. */
static int map(block *self) {
  size_t room = self->mapped = pages(self->nbytes + ALIGN);
  size_t reach = (self->nbytes + ALIGN - 1) / ALIGN * ALIGN;
  int prot = self->kind == DEVICE_MEMORY ? PROT_NONE : PROT_READ | PROT_WRITE;
  int file = memfd_create("standin", 0);
  if (file < 0 || ftruncate(file, (off_t)room) != 0) return E_NOMEM;
  self->map = mmap(NULL, room + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                   -1, 0);
  self->map_bytes = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (self->map == MAP_FAILED || self->map_bytes == MAP_FAILED ||
      mmap(self->map + PAGE, room, prot, MAP_SHARED | MAP_FIXED, file, 0) == MAP_FAILED) {
    close(file);
    return E_NOMEM;
  }
  size_t before = room - reach;
  int code = self->kind == PINNED ? see(self, before) : OK;
  close(file);
  if (code != OK) return code;
  self->address = self->map + PAGE + before;
  self->bytes = self->map_bytes + before;
  memset(self->map_bytes, PATTERN, before);
  if (self->nbytes <= FILLED) memset(self->bytes, 0xA5, self->nbytes);
  memset(self->bytes + self->nbytes, PATTERN, reach - self->nbytes);
  return OK;
}

int memory_new(int kind, size_t nbytes, int device, void **out) {
  *out = NULL;
  if (nbytes == 0) {
    if (is_hip) return OK;
    return E_VALUE;
  }
  if (kind != PINNED && (nbytes > set.memory[device] ||
                         memory_used(device) > set.memory[device] - nbytes)) {
    return E_NOMEM;
  }
  if (kind == PINNED && nbytes > (size_t)1 << 40) return E_NOMEM;
  block *self = calloc(1, sizeof *self);
  if (self == NULL) return E_NOMEM;
  self->kind = kind;
  self->nbytes = nbytes;
  self->device = device;
  context *here = current();
  self->context = here ? context_base(here) : 0;
  int code = map(self);
  if (code == OK) code = add(self);
  if (code != OK) {
    free(self);
    return code;
  }
  *out = self->address;
  return OK;
}

static int intact(const unsigned char *bytes, const unsigned char *end) {
  for (; bytes < end; ++bytes) {
    if (*bytes != PATTERN) return 0;
  }
  return 1;
}

static void check(block *self) {
  if (self->map == NULL) return;
  if (!intact(self->map_bytes, self->bytes) ||
      !intact(self->bytes + self->nbytes, self->map_bytes + self->mapped)) {
    violation("the red zone of a block of %zu bytes was written to", self->nbytes);
    memset(self->map_bytes, PATTERN, (size_t)(self->bytes - self->map_bytes));
    memset(self->bytes + self->nbytes, PATTERN,
           self->mapped - (size_t)(self->bytes - self->map_bytes) - self->nbytes);
  }
}

void memory_check(void) {
  for (int i = 0; i < count; ++i) check(live[i]);
}

/* A block that pending work uses stays mapped: the mistake was counted already. */
static void forget(block *old) {
  if (old->map != NULL) munmap(old->map, old->mapped + 2 * PAGE);
  if (old->alias != NULL) munmap(old->alias_map, old->alias_mapped);
  if (!old->in_use) free(old);
}

/* Removes a block from the table; its addresses stay reserved, and inaccessible, for a while. */
void block_drop(block *self) {
  int i = 0;
  check(self);
  account(self, -1);
  while (live[i] != self) ++i;
  live[i] = live[--count];
  if (self->map == NULL) {
    forget(self);
    return;
  }
  munmap(self->map_bytes, self->mapped);
  mmap(self->map, self->mapped + 2 * PAGE, PROT_NONE,
       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  block **place = &quarantine[quarantined++ % QUARANTINE];
  if (*place != NULL) forget(*place);
  *place = self;
}

int memory_free(void *address, unsigned kinds) {
  if (address == NULL) return OK;
  block *self = block_of(address);
  if (self == NULL || self->address != address || !(kinds >> self->kind & 1)) {
    if (freed_before(address)) violation("freed a second time");
    else violation("freed what is not the start of a block of that kind");
    return E_VALUE;
  }
  if (self->dying) {
    violation("freed a second time, after its stream-ordered free");
    return E_VALUE;
  }
  context *here = current();
  if (self->kind != PINNED && here != NULL && here->device != self->device) {
    violation("memory of device %d freed with device %d current", self->device, here->device);
  }
  if (self->in_use && set.free_waits && (!self->pool || is_hip)) wait_for_block(self); /* not CUDA's pools */
  if (self->in_use) violation("freed while work that uses it is not done");
  block_drop(self);
  return OK;
}

int memory_register(void *address, size_t nbytes) {
  if (address == NULL || nbytes == 0) return E_VALUE;
  if (block_of(address) != NULL || block_of((char *)address + nbytes - 1) != NULL) {
    return E_REGISTERED;
  }
  block *self = calloc(1, sizeof *self);
  if (self == NULL) return E_NOMEM;
  self->kind = REGISTERED;
  self->address = self->bytes = address;
  self->nbytes = nbytes;
  context *here = current();
  self->device = here ? here->device : 0;
  self->context = here ? context_base(here) : 0;
  int code = see(self, (uintptr_t)address % PAGE);
  if (code == OK) code = add(self);
  if (code != OK) free(self);
  return code;
}

int memory_unregister(void *address) {
  block *self = block_of(address);
  if (self == NULL || self->kind != REGISTERED || self->address != address) {
    return E_NOT_REGISTERED;
  }
  if (self->in_use) violation("unregistered while work that uses it is not done");
  block_drop(self);
  return OK;
}

void memory_lose(uint64_t owner) {
  for (int i = count; i-- > 0;) {
    if (live[i]->context == owner) block_drop(live[i]);
  }
}

void *standin_bytes(const void *address) {
  core_lock();
  block *self = block_of(address);
  void *bytes =
      self == NULL ? NULL : self->bytes + ((const unsigned char *)address - self->address);
  core_unlock();
  return bytes;
}
