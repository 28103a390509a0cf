/* No-wait tests: which calls of a thread can keep it until a GPU has done its work, whichever library makes them.
 *
 * Build the library with Rust alone, and link it:
 *     rustc --edition=2024 --crate-type=cdylib --crate-name=syncscope_no_wait -Copt-level=2 -Cpanic=abort lib.rs
 * The Python package has it, too: python -c "import syncscope; print(syncscope.library())".
 *
 * A region is that of its thread, from begin to end. Regions nest: a wait is noted in the innermost one.
 * While a region is open, no profiler can use CUPTI in this process.
 *
 *     const char *why;
 *     if (syncscope_no_wait_begin(&why) != 0) { fprintf(stderr, "%s\n", why); exit(2); }
 *     work();
 *     size_t waits = syncscope_no_wait_end();
 *     for (size_t i = 0; i < waits; i++) puts(syncscope_no_wait_text(i));
 */
#ifndef SYNCSCOPE_NO_WAIT_H
#define SYNCSCOPE_NO_WAIT_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Opens a region in this thread. Returns 0; or 1 where there is no GPU, and 2 where the calls cannot be seen: then `*why` is a
 * text, until this thread is refused again. `why` may be null. */
int syncscope_no_wait_begin(const char **why);

/* Closes the innermost region of this thread. Returns how many different calls in it could wait; SIZE_MAX where this thread has no
 * region, as one that was opened in another thread. */
size_t syncscope_no_wait_end(void);

/* What one of these calls was: a line with how often it was made, the driver's function, how many bytes it copies and what it waits
 * for, then a line for each native frame, the innermost first. Null beyond the last. The text lasts until this thread closes
 * another region. */
const char *syncscope_no_wait_text(size_t number);

#ifdef __cplusplus
}
#endif

#endif
