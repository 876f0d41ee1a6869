/* Over a vocabulary: the logarithm of the sum of all exponentials, and the highest. */
#include "common.h"
#include "power.h"

void normalise(int threads, whole rows, whole size, const float *logits, float *found) {
#pragma omp parallel num_threads(threads)
    {
        whole begin, end;
        share(rows, &begin, &end);
        for (whole row = begin; row < end; row++) {
            const float *x = logits + row * size;
            __m512 high = _mm512_set1_ps(-INFINITY);
            for (whole i = 0; i < size; i += 16)
                high = _mm512_max_ps(_mm512_mask_loadu_ps(high, first(size - i), x + i), high);
            float highest = _mm512_reduce_max_ps(high), total = 0;
            if (highest == -INFINITY) highest = 0;
#pragma omp simd reduction(+ : total)
            for (whole i = 0; i < size; i++) total += power(x[i] - highest);
            found[row] = highest + logf(total);
        }
    }
}

/* The `count` highest of each row, highest first, the earlier one first among equals. */
void highest(int threads, whole rows, whole size, whole count, const float *logits, float *best, int64_t *places) {
#pragma omp parallel num_threads(threads)
    {
        whole begin, end;
        share(rows, &begin, &end);
        for (whole row = begin; row < end; row++) {
            const float *x = logits + row * size;
            float *values = best + row * count;
            int64_t *ids = places + row * count;
            for (whole i = 0; i < size; i += 16) {
                __m512 some = _mm512_maskz_loadu_ps(first(size - i), x + i);
                __mmask16 better = first(size - i);
                if (i >= count) better &= _mm512_cmp_ps_mask(some, _mm512_set1_ps(values[count - 1]), _CMP_GT_OQ);
                for (; better; better &= better - 1) {
                    whole id = i + __builtin_ctz(better), place = smaller(id, count - 1);
                    if (id >= count && !(x[id] > values[place])) continue; /* not better than those just before it */
                    for (; place > 0 && x[id] > values[place - 1]; place--) {
                        values[place] = values[place - 1];
                        ids[place] = ids[place - 1];
                    }
                    values[place] = x[id];
                    ids[place] = id;
                }
            }
        }
    }
}
