/* Over a vocabulary: the logarithm of the sum of all exponentials, and the highest. */
#include "common.h"

/* Of the 16 from i on, minus infinity where there are no more. */
static inline lanes some_of(const float *x, whole i, whole size) {
    if (size - i >= 16) return load(x + i, 16);
    float some[16];
    for (whole n = 0; n < 16; n++) some[n] = n < size - i ? x[i + n] : -INFINITY;
    return load(some, 16);
}

void normalise(int threads, whole rows, whole size, const float *logits, float *found) {
#pragma omp parallel num_threads(threads)
    {
        whole begin, end;
        share(rows, &begin, &end);
        for (whole row = begin; row < end; row++) {
            const float *x = logits + row * size;
            lanes high = all(-INFINITY), total = all(0);
            for (whole i = 0; i < size; i += 16) high = larger(high, some_of(x, i, size));
            float highest = largest(high);
            if (highest == -INFINITY) highest = 0;
            const lanes most = all(-highest);
            for (whole i = 0; i < size; i += 16)
                total = plus(total, power_lanes(plus(some_of(x, i, size), most)));
            found[row] = highest + logf(sum(total));
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
                if (i >= count && !any_greater(some_of(x, i, size), alike(values[count - 1]))) continue;
                for (whole id = i; id < smaller(i + 16, size); id++) {
                    whole place = smaller(id, count - 1);
                    if (id >= count && !(x[id] > values[place])) continue; /* not better than those before it */
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
