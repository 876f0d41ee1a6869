/* What a decoding step on a CPU spends its time on: a few rows times a large matrix, and one query's attention to the
 * keys kept so far. Libraries are made for many rows and leave half of the processor idle here.
 *
 * A matrix is cut into panels of 32 outputs and lies in memory in the order in which it is read:
 *
 *     float32     panel, input, output                                 32 numbers for each input
 *     bfloat16    panel, half, group of 32 inputs, pair, output, 2     a group of a half is 1 kB: one tile of AMX
 *     int8        panel, half, group of 64 inputs, four, output, 4
 *
 * Each row's sums are formed in one fixed order, so that no result depends on the rows beside it.
 *
 * What needs memory of its own returns 0, or 1 if there was none; then its result is not there.
 */
#include <immintrin.h>
#include <omp.h>
#include <stdint.h>
#include <stdlib.h>

enum { PANEL = 32, HALF = 16 };

typedef long whole;
typedef float vector __attribute__((vector_size(64)));

static inline whole smaller(whole a, whole b) { return a < b ? a : b; }
static inline whole groups(whole count, whole size) { return (count + size - 1) / size; }

/* Memory of the calling thread, good until it asks again; NULL if there is no more. */
void *scratch(size_t bytes);

/* Which of `count` things are this thread's. */
static inline void share(whole count, whole *begin, whole *end) {
    whole threads = omp_get_num_threads(), thread = omp_get_thread_num();
    *begin = count * thread / threads;
    *end = count * (thread + 1) / threads;
}

/* The first `count` of 16, all of them if there are more. */
static inline __mmask16 first(whole count) { return count < 16 ? (1 << count) - 1 : 0xffff; }

/* Where a product goes, and what is done to it on the way. */
typedef struct {
    const float *bias; /* of each output, or none */
    const float *add;  /* a table of the output's shape, or none */
    int relu;
    float *y;
    whole out;
} Output;

static inline void put(const Output *to, __m512 sums, whole row, whole column) {
    __mmask16 within = first(to->out - column);
    whole place = row * to->out + column;
    if (to->bias) sums += _mm512_maskz_loadu_ps(within, to->bias + column);
    if (to->relu) sums = _mm512_max_ps(_mm512_setzero_ps(), sums); /* in this order NaN stays NaN */
    if (to->add) sums += _mm512_maskz_loadu_ps(within, to->add + place);
    _mm512_mask_storeu_ps(to->y + place, within, sums);
}
