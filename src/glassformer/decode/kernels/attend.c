/* Attention of one query for each row: softmax(q k^T scale + bias) v. */
#include "common.h"
#include "power.h"
#include <string.h>

/* Shapes: B sentences of K beams, H heads, E entries of a cache that has room for more, d head width. */
typedef struct {
    whole beams, heads, d, entries, room;
    const float *q, *new_k, *new_v; /* (B K, H, d), one row `stride` after the other; new ones may be missing */
    whole stride;
    float *k, *v;      /* (B, H, room, d): beams share what their sentence keeps */
    const float *bias; /* or none; found by its steps along B, H, K and E */
    whole steps[4];
    float scale;
    float *y; /* (B K, H, d) */
} Attention;

static inline float dot(const float *a, const float *b, whole d) {
    __m512 sum = _mm512_setzero_ps();
    for (whole i = 0; i < d; i += 16)
        sum += _mm512_maskz_loadu_ps(first(d - i), a + i) * _mm512_maskz_loadu_ps(first(d - i), b + i);
    return _mm512_reduce_add_ps(sum);
}

/* y = the sum of the rows of v that are seen, each times its weight; up to 64 columns of it in registers. */
static inline void gather(const float *weights, const int32_t *seen, whole count, const float *v, whole d, float *y) {
    for (whole left = 0; left < d; left += 64) {
        __mmask16 within[4] = {0};
        vector sums[4] = {0};
        for (whole i = 0; i < 4 && left + 16 * i < d; i++) within[i] = first(d - left - 16 * i);
        for (whole n = 0; n < count; n++)
            for (whole i = 0; i < 4; i++)
                sums[i] += weights[n] * (vector)_mm512_maskz_loadu_ps(within[i], v + seen[n] * d + left + 16 * i);
        for (whole i = 0; i < 4; i++) _mm512_mask_storeu_ps(y + left + 16 * i, within[i], (__m512)sums[i]);
    }
}

/* One query. If it may see nothing, it finds zeros. */
static inline __attribute__((always_inline)) void ask(
    const Attention *a, const whole d, const float *q, const float *k, const float *v, const float *bias, float *scores,
    float *y) {
    whole room = groups(a->entries, 16) * 16, count = 0, full;
    int32_t *seen = (int32_t *)(scores + room);
    float highest = -INFINITY, total = 0;
    for (whole e = 0; e < a->entries; e++) {
        float more = bias ? bias[e * a->steps[3]] : 0;
        if (more == -INFINITY) continue;
        seen[count] = e;
        scores[count++] = dot(q, k + e * d, d) * a->scale + more;
    }
    for (full = count; full % 16; full++) scores[full] = -INFINITY; /* what follows takes 16 at a time */
#pragma omp simd reduction(max : highest)
    for (whole n = 0; n < full; n++) highest = scores[n] > highest ? scores[n] : highest;
#pragma omp simd reduction(+ : total)
    for (whole n = 0; n < full; n++) total += scores[n] = power(scores[n] - highest);
    for (whole n = 0; n < full; n++) scores[n] /= total;
    gather(scores, seen, count, v, d, y);
}

int attend(int threads, whole sentences, const Attention *a) {
    int failed = 0;
#pragma omp parallel num_threads(threads)
    {
        whole begin, end, K = a->beams, d = a->d, place = a->entries - K;
        float *scores = scratch(groups(a->entries, 16) * 16 * 2 * sizeof(float));
        share(sentences * a->heads, &begin, &end);
        if (!scores) {
#pragma omp atomic write
            failed = 1;
            end = begin;
        }
        for (whole pair = begin; pair < end; pair++) {
            whole sentence = pair / a->heads, head = pair % a->heads;
            float *k = a->k + pair * a->room * d, *v = a->v + pair * a->room * d;
            for (whole beam = 0; a->new_k && beam < K; beam++) {
                whole from = (sentence * K + beam) * a->stride + head * d;
                memcpy(k + (place + beam) * d, a->new_k + from, d * sizeof(float));
                memcpy(v + (place + beam) * d, a->new_v + from, d * sizeof(float));
            }
            for (whole beam = 0; beam < K; beam++) {
                whole row = sentence * K + beam;
                const float *bias = a->bias;
                if (bias) bias += sentence * a->steps[0] + head * a->steps[1] + beam * a->steps[2];
                const float *q = a->q + row * a->stride + head * d;
                float *y = a->y + (row * a->heads + head) * d;
                if (d == 64) ask(a, 64, q, k, v, bias, scores, y); /* the usual width, with all loops unrolled */
                else ask(a, d, q, k, v, bias, scores, y);
            }
        }
    }
    return failed;
}
