/* y = relu(x W^T + bias) + add in float32: x (rows, in), y (rows, out), W in panels. */
#include "common.h"

/* Of a block: small enough for the registers and the first-level cache. */
#if defined(__AVX2__) && !defined(__AVX512F__)
enum { ROWS = 6, INPUTS = 128 };
#else
enum { ROWS = 12, INPUTS = 128 };
#endif

/* sums[row] += x[input, row] * w[input] for one block, LANES times `wide` outputs at once. `next` is what is read after
 * it, `step` bytes for each input. */
static inline __attribute__((always_inline)) void block(
    const int rows, const int wide, whole inputs, const float *x, const float *w, float *sums, const char *next,
    whole step) {
    for (int from = 0; from < PANEL; from += wide * LANES) {
        native found[ROWS][8]; /* of which only these are used, and become registers */
#pragma GCC unroll 12
        for (int r = 0; r < rows; r++)
#pragma GCC unroll 8
            for (int n = 0; n < wide; n++) found[r][n] = *(const native *)(sums + r * PANEL + from + n * LANES);
        for (whole i = 0; i < inputs; i++) {
            native own[8];
#pragma GCC unroll 8
            for (int n = 0; n < wide; n++) own[n] = *(const loose *)(w + i * PANEL + from + n * LANES);
            if (!from) __builtin_prefetch(next + i * step, 0, 2);
            if (!from && step > 64) __builtin_prefetch(next + i * step + 64, 0, 2);
#pragma GCC unroll 12
            for (int r = 0; r < rows; r++) {
                native same = alike(x[i * rows + r]);
#pragma GCC unroll 8
                for (int n = 0; n < wide; n++) found[r][n] = fused(same, own[n], found[r][n]);
            }
        }
#pragma GCC unroll 12
        for (int r = 0; r < rows; r++)
#pragma GCC unroll 8
            for (int n = 0; n < wide; n++) *(native *)(sums + r * PANEL + from + n * LANES) = found[r][n];
    }
}

static void any_block(whole rows, whole n, const float *x, const float *w, float *sums, const char *next, whole step) {
    enum { ALL = PANEL / LANES, SOME = ALL < 4 ? ALL : 4 };
    switch (rows) { /* a number known when this is compiled: only then do the sums stay in registers */
#define CASE(count, wide) case count: return block(count, wide, n, x, w, sums, next, step)
        CASE(1, ALL);
        CASE(2, ALL);
        CASE(3, ALL);
#if defined(__AVX2__) && !defined(__AVX512F__)
        CASE(4, 2);
        CASE(5, 2);
        CASE(6, 2);
#else
        CASE(4, SOME);
        CASE(5, SOME);
        CASE(6, SOME);
        CASE(7, 2);
        CASE(8, 2);
        CASE(9, 2);
        CASE(10, 2);
        CASE(11, 2);
        CASE(12, 2);
#endif
#undef CASE
    }
}

void team_float32(const Matrix *matrix, whole rows, const float *x, const float *add, float *y, float *room) {
    whole begin, end, in = matrix->in, step = PANEL * sizeof(float) / groups(rows, ROWS);
    float *turned = room + omp_get_num_threads() * rows * PANEL; /* block of rows, input, row */
    float *sums = room + omp_get_thread_num() * rows * PANEL;
#pragma omp barrier
    share(in, &begin, &end);
    for (whole top = 0; top < rows; top += ROWS) {
        whole n = smaller(ROWS, rows - top);
        for (whole i = begin; i < end; i++)
            for (whole r = 0; r < n; r++) turned[top * in + i * n + r] = x[(top + r) * in + i];
    }
#pragma omp barrier
    share(groups(matrix->out, PANEL), &begin, &end);
    for (whole panel = begin; panel < end; panel++) {
        memset(sums, 0, rows * PANEL * sizeof(float));
        for (whole i = 0; i < in; i += INPUTS) {
            const float *part = (const float *)matrix->table + (panel * in + i) * PANEL;
            const char *next = (const char *)(part + INPUTS * PANEL);
            for (whole top = 0; top < rows; top += ROWS, next += INPUTS * step) {
                whole n = smaller(ROWS, rows - top);
                any_block(n, smaller(INPUTS, in - i), turned + top * in + i * n, part, sums + top * PANEL, next, step);
            }
        }
        for (whole row = 0; row < rows; row++)
            for (whole column = panel * PANEL; column < smaller(matrix->out, (panel + 1) * PANEL); column += HALF)
                put(matrix, load(sums + row * PANEL + column % PANEL, 16), column, row * matrix->out + column, add, y);
    }
#pragma omp barrier
}
