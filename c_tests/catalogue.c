/* Runs the whole catalogue and counts its rows. */
#include "catalogue.h"

/* Sections and the number of the catalogue's rows in each. */
static const struct {
  char letter;
  int rows;
} sections[] = {{'V', 61}, {'W', 19}, {'C', 20}, {'K', 31}, {'F', 25}, {'P', 15}, {'S', 11}};

static unsigned char tested[128][64], listed[128][64];

static unsigned char *slot(unsigned char table[128][64], const char *id) {
  return &table[(int)id[0]][atoi(id + 1)];
}

static void mark(const char *id) { *slot(tested, id) = 1; }

static void run(const c_row *rows) {
  static char context[128];
  long live = inject_live();
  for (; rows->id != NULL; ++rows) {
    snprintf(context, sizeof context, "%s, %s", rows->id, rows->what);
    t_context = context;
    rows->run();
    t_unwatch();
    t_guards_free();
    EQUAL(inject_live(), live);
    mark(rows->id);
  }
  t_context = "";
}

int main(void) {
  const c_row *const tables[] = {c_rows_v, c_rows_w, c_rows_c, c_rows_k, c_rows_f, c_rows_p, c_rows_s};
  const c_absent *absent;
  int here = 0, elsewhere = 0, impossible = 0;
  size_t i;
  c_load_locales();
  c_data_rows(mark);
  for (i = 0; i < sizeof tables / sizeof *tables; ++i) run(tables[i]);
  for (absent = c_absent_rows; absent->id != NULL; ++absent) {
    *slot(listed, absent->id) = 1;
    t_context = absent->id;
    CHECK(!*slot(tested, absent->id));
    ++*(absent->where != NULL ? &elsewhere : &impossible);
  }
  for (i = 0; i < sizeof sections / sizeof *sections; ++i) {
    int number;
    for (number = 1; number <= sections[i].rows; ++number) {
      char id[16];
      snprintf(id, sizeof id, "%c%02d", sections[i].letter, number);
      t_context = id;
      here += *slot(tested, id);
      CHECK(*slot(tested, id) || *slot(listed, id));
    }
  }
  t_context = "";
  printf("rows: %d tested here, %d in other programs, %d not applicable, of 182\n", here,
         elsewhere, impossible);
  return t_close();
}
