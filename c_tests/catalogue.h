/* The catalogue of hostile inputs as a table, with the catalogue's ids. A row is tested here,
 * tested by another program, or cannot be tested; the table then gives the reason. */
#ifndef C_TESTS_CATALOGUE_H_
#define C_TESTS_CATALOGUE_H_

#include "harness.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A row as code: several calls. */
typedef struct c_row {
  const char *id;
  const char *what; /* must be so: a sentence */
  void (*run)(void);
} c_row;

/* A row that is not tested here. */
typedef struct c_absent {
  const char *id;
  const char *where; /* the program that tests it, or NULL */
  const char *why;   /* the reason, or a remark */
} c_absent;

/* Each ends with an id of NULL. */
extern const c_row c_rows_v[];
extern const c_row c_rows_w[];
extern const c_row c_rows_c[];
extern const c_row c_rows_k[];
extern const c_row c_rows_f[];
extern const c_row c_rows_p[];
extern const c_row c_rows_s[];
extern const c_absent c_absent_rows[];

/* The C library caches locale data: loaded once, before memory is counted. */
void c_load_locales(void);

/* Runs the rows of rows.inc through every function that reads a tensor; marks their ids. */
void c_data_rows(void (*mark)(const char *id));

#ifdef __cplusplus
}
#endif

#endif
