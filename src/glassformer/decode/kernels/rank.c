/* Over a vocabulary: the logarithm of the sum of all exponentials, and the highest. */
#include "common.h"

/* Of the 16 from i on, minus infinity where there are no more. */
static inline lanes some_of(const float *x, whole i, whole size) {
    if (size - i >= 16) return load(x + i, 16);
    float some[16];
    for (whole n = 0; n < 16; n++) some[n] = n < size - i ? x[i + n] : -INFINITY;
    return load(some, 16);
}

static inline lanes less(lanes x, float much) {
    EACH_PART x.part[p] -= much;
    return x;
}

/* The highest of up to SEGMENT outputs, and the sum of their exponentials, as seen from there. */
void look_at(const float *x, whole size, float *highest, float *total) {
    lanes high = all(-INFINITY), found = all(0);
    for (whole i = 0; i < size; i += 16) high = larger(high, some_of(x, i, size));
    float most = *highest = largest(high);
    if (most == -INFINITY) most = 0;
    for (whole i = 0; i < size; i += 16) found = plus(found, some_power_lanes(less(some_of(x, i, size), most)));
    *total = sum(found);
}

/* All segments of a row together. */
float normaliser_of(const float *highest, const float *total, whole segments) {
    lanes high = all(-INFINITY), found = all(0);
    for (whole i = 0; i < segments; i += 16) high = larger(high, some_of(highest, i, segments));
    float most = largest(high);
    if (most == -INFINITY) most = 0;
    for (whole i = 0; i < segments; i += 16) {
        lanes power = power_lanes(less(some_of(highest, i, segments), most));
        found = fused_lanes(power, load(total + i, segments - i), found);
    }
    return most + logf(sum(found));
}

/* The `found` highest so far, and those of x, whose first is the `first`: the new number of them, at most `count`. */
whole ranked(const float *x, whole size, whole first, float *best, int64_t *ids, whole found, whole count) {
    whole i = 0;
    for (; i < size && found < count; i++) found = insert(best, ids, found, count, x[i], first + i);
    for (; i < size; i += 16)
        for (uint32_t more = greater(some_of(x, i, size), alike(best[count - 1])); more; more &= more - 1) {
            whole n = i + __builtin_ctz(more);
            found = insert(best, ids, found, count, x[n], first + n);
        }
    return found;
}

int normalise(int threads, whole rows, whole size, const float *logits, float *found) {
    whole segments = groups(size, SEGMENT);
    float *room = scratch(threads * 2 * segments * sizeof(float));
    if (!room) return 1;
#pragma omp parallel num_threads(threads)
    {
        whole begin, end;
        float *highest = room + omp_get_thread_num() * 2 * segments, *total = highest + segments;
        share(rows, &begin, &end);
        for (whole row = begin; row < end; row++) {
            for (whole n = 0; n < segments; n++) {
                whole left = n * SEGMENT;
                look_at(logits + row * size + left, smaller(SEGMENT, size - left), highest + n, total + n);
            }
            found[row] = normaliser_of(highest, total, segments);
        }
    }
    return 0;
}

/* The `count` highest of each row, highest first, the earlier one first among equals. */
void highest(int threads, whole rows, whole size, whole count, const float *logits, float *best, int64_t *places) {
#pragma omp parallel num_threads(threads)
    {
        whole begin, end;
        share(rows, &begin, &end);
        for (whole row = begin; row < end; row++)
            ranked(logits + row * size, size, 0, best + row * count, places + row * count, 0, count);
    }
}
