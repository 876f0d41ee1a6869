/* y = relu(x W^T + bias) + add in float32: x (rows, in), y (rows, out), W in panels. */
#include "common.h"
#include <string.h>

enum { ROWS = 12, INPUTS = 128 }; /* of a block: small enough for the registers and the first-level cache */

/* sums[row] += x[input, row] * w[input] for one block. `next` is what is read after it, `step` bytes for each input. */
static inline __attribute__((always_inline)) void block(
    const int rows, whole inputs, const float *x, const vector *w, vector *sums, const char *next, whole step) {
    vector left[ROWS], right[ROWS];
    for (int r = 0; r < rows; r++) left[r] = sums[2 * r], right[r] = sums[2 * r + 1];
    for (whole i = 0; i < inputs; i++) {
        __builtin_prefetch(next + i * step, 0, 2);
        if (step > 64) __builtin_prefetch(next + i * step + 64, 0, 2);
#pragma GCC unroll 12
        for (int r = 0; r < rows; r++) {
            left[r] += x[i * rows + r] * w[2 * i];
            right[r] += x[i * rows + r] * w[2 * i + 1];
        }
    }
    for (int r = 0; r < rows; r++) sums[2 * r] = left[r], sums[2 * r + 1] = right[r];
}

static void any_block(
    whole rows, whole n, const float *x, const vector *w, vector *sums, const char *next, whole step) {
    switch (rows) { /* a number known when this is compiled: only then do the sums stay in registers */
#define CASE(count) case count: return block(count, n, x, w, sums, next, step)
        CASE(1);
        CASE(2);
        CASE(3);
        CASE(4);
        CASE(5);
        CASE(6);
        CASE(7);
        CASE(8);
        CASE(9);
        CASE(10);
        CASE(11);
        CASE(12);
#undef CASE
    }
}

int product(int threads, whole rows, whole in, whole out, const float *x, const float *w, const float *bias,
            const float *add, int relu, float *y) {
    if (!rows) return 0;
    const Output to = {bias, add, relu, y, out};
    whole step = PANEL * sizeof(float) / groups(rows, ROWS);
    vector *all = scratch((threads * rows * PANEL + rows * in) * sizeof(float));
    if (!all) return 1;
    float *turned = (float *)(all + threads * rows * 2); /* block of rows, input, row */
#pragma omp parallel num_threads(threads)
    {
        whole begin, end;
        share(in, &begin, &end);
        for (whole top = 0; top < rows; top += ROWS) {
            whole n = smaller(ROWS, rows - top);
            for (whole i = begin; i < end; i++)
                for (whole r = 0; r < n; r++) turned[top * in + i * n + r] = x[(top + r) * in + i];
        }
#pragma omp barrier
        vector *sums = all + omp_get_thread_num() * rows * 2;
        share(groups(out, PANEL), &begin, &end);
        for (whole panel = begin; panel < end; panel++) {
            memset(sums, 0, rows * PANEL * sizeof(float));
            for (whole i = 0; i < in; i += INPUTS) {
                const vector *part = (const vector *)(w + (panel * in + i) * PANEL);
                const char *next = (const char *)(part + 2 * INPUTS);
                for (whole top = 0; top < rows; top += ROWS, next += INPUTS * step) {
                    whole n = smaller(ROWS, rows - top);
                    any_block(n, smaller(INPUTS, in - i), turned + top * in + i * n, part, sums + 2 * top, next, step);
                }
            }
            for (whole row = 0; row < rows; row++)
                for (whole half = 0; half < 2 && panel * PANEL + half * HALF < out; half++)
                    put(&to, (__m512)sums[2 * row + half], row, panel * PANEL + half * HALF);
        }
    }
    return 0;
}
