/* Tensors of plugins that are unloaded before their deleters run: unload PLUGIN... */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "dlpack_rs.h"

int main(int count, char **plugins) {
  DLManagedTensorVersioned *made[8] = {NULL};
  int i;
  for (i = 1; i < count && i < 8; ++i) {
    void *plugin = dlopen(plugins[i], RTLD_NOW | RTLD_LOCAL), *found;
    DLManagedTensorVersioned *(*make)(float);
    if (plugin == NULL) {
      printf("%s\n", dlerror());
      return 1;
    }
    found = dlsym(plugin, "make");
    memcpy(&make, &found, sizeof make);
    made[i] = make((float)i);
    if (made[i] == NULL || dlclose(plugin) != 0) return 1;
  }
  for (i = 1; i < count && i < 8; ++i) {
    if (*(float *)made[i]->dl_tensor.data != (float)i) return 1;
    made[i]->deleter(made[i]);
  }
  return 0;
}
