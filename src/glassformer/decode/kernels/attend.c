/* Attention: softmax(q k^T scale + bias) v. */
#include "common.h"

static inline float dot(const float *a, const float *b, whole d) {
    lanes total = all(0);
    for (whole i = 0; i < d; i += 16) total = fused_lanes(load(a + i, d - i), load(b + i, d - i), total);
    return sum(total);
}

/* Scores to shares of one: `count` of them, with room up to the next 16; to zeros if all are minus infinity. */
static inline void softmax(float *scores, whole count) {
    lanes highest = all(-INFINITY), total = all(0);
    for (whole n = count; n % 16; n++) scores[n] = -INFINITY;
    for (whole n = 0; n < count; n += 16) highest = larger(highest, load(scores + n, 16));
    float top = largest(highest);
    lanes most = all(top == -INFINITY ? 0 : -top);
    for (whole n = 0; n < count; n += 16) {
        lanes some = power_lanes(plus(load(scores + n, 16), most));
        total = plus(total, some);
        store(scores + n, some, 16);
    }
    float whole_sum = sum(total);
    lanes share = all(whole_sum == 0 ? 0 : 1 / whole_sum);
    for (whole n = 0; n < count; n += 16) store(scores + n, times(load(scores + n, 16), share), 16);
}

/* What is scattered comes late unless it is asked for early. */
static inline void fetch(const float *row, whole d) {
    for (whole i = 0; i < d; i += 16) __builtin_prefetch(row + i);
}

/* y = the sum of the rows of v that are seen, each times its weight; up to 32 columns of it in registers. What is seen
 * of `next` is read after this. */
static inline void gather(
    const float *weights, const int32_t *seen, whole count, const float *v, const float *next, whole d, float *y) {
    for (whole left = 0; left < d; left += 32) {
        lanes one = all(0), other = all(0);
        for (whole n = 0; n < count; n++) {
            const float *row = v + seen[n] * d + left;
            fetch(next + seen[n] * d + left, smaller(d - left, 32));
            lanes weight = all(weights[n]);
            one = fused_lanes(weight, load(row, d - left), one);
            if (d - left > 16) other = fused_lanes(weight, load(row + 16, d - left - 16), other);
        }
        store(y + left, one, d - left);
        if (d - left > 16) store(y + left + 16, other, d - left - 16);
    }
}

/* One query. If it may see nothing, it finds zeros. */
static inline __attribute__((always_inline)) void ask(
    const Attention *a, const whole d, const float *q, const float *k, const float *v, const float *bias,
    const int32_t *seen, float *scores, float *y) {
    whole count = seen ? a->count : 0;
    int32_t *found = (int32_t *)(scores + groups(a->entries, 16) * 16);
    for (whole n = 0; n < count; n++) {
        fetch(v + seen[n] * d, d);
        scores[n] = dot(q, k + seen[n] * d, d) * a->scale;
    }
    for (whole e = 0; !seen && e < a->entries; e++) {
        float more = bias ? bias[e * a->steps[3]] : 0;
        if (more == -INFINITY) continue;
        found[count] = e;
        scores[count++] = dot(q, k + e * d, d) * a->scale + more;
    }
    softmax(scores, count);
    gather(scores, seen ? seen : found, count, v, k + a->room * d, d, y); /* and the keys of the next head */
}

size_t attend_bytes(whole entries) { return groups(entries, 16) * 16 * 2 * sizeof(float); }

void team_attend(whole sentences, const Attention *a, char *room) {
    whole begin, end, K = a->beams, d = a->d, place = a->entries - K;
    float *scores = (float *)(room + omp_get_thread_num() * attend_bytes(a->entries));
    share(sentences * a->heads, &begin, &end);
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
            const int32_t *seen = a->seen ? a->seen + row * a->limit : NULL;
            if (bias) bias += sentence * a->steps[0] + head * a->steps[1] + beam * a->steps[2];
            const float *q = a->q + row * a->stride + head * d;
            float *y = a->y + (row * a->heads + head) * d;
            if (d == 64) ask(a, 64, q, k, v, bias, seen, scores, y); /* the usual widths, with all loops unrolled */
            else if (d == 32) ask(a, 32, q, k, v, bias, seen, scores, y);
            else ask(a, d, q, k, v, bias, seen, scores, y);
        }
    }
#pragma omp barrier
}

int attend(int threads, whole sentences, const Attention *a) {
    char *room = scratch(threads * attend_bytes(a->entries));
    if (!room) return 1;
#pragma omp parallel num_threads(threads)
    team_attend(sentences, a, room);
    return 0;
}

enum { QUERIES = 4 }; /* side by side: what they read is read once */

/* Of `count` <= QUERIES queries to all keys, which lie turned: (d, entries), `wide` numbers a row. */
static inline __attribute__((always_inline)) void score_all(
    const whole count, const Attention *a, const float *q, const float *turned, whole wide, const float *bias,
    float *scores) {
    for (whole e = 0; e < wide; e += 16) {
        lanes found[QUERIES], more = all(0);
        if (bias) more = load(bias + e, a->entries - e); /* what is behind the last entry is not looked at */
#pragma GCC unroll 4
        for (int n = 0; n < count; n++) found[n] = all(0);
        for (whole i = 0; i < a->d; i++) {
            lanes keys = load(turned + i * wide + e, 16);
#pragma GCC unroll 4
            for (int n = 0; n < count; n++) found[n] = fused_lanes(all(q[n * a->stride + i]), keys, found[n]);
        }
#pragma GCC unroll 4
        for (int n = 0; n < count; n++) store(scores + n * wide + e, plus(times(found[n], all(a->scale)), more), 16);
    }
}

/* 16 columns of what they gather. */
static inline __attribute__((always_inline)) void gather_all(
    const whole count, const Attention *a, const float *scores, whole wide, const float *v, whole stride, whole columns,
    float *y) {
    lanes found[QUERIES];
#pragma GCC unroll 4
    for (int n = 0; n < count; n++) found[n] = all(0);
    for (whole e = 0; e < a->entries; e++) {
        if (scores[e] == 0 && (count < 2 || scores[wide + e] == 0) && (count < 3 || scores[2 * wide + e] == 0) &&
            (count < 4 || scores[3 * wide + e] == 0))
            continue; /* what nobody sees has no influence, whatever it is */
        lanes values = load(v + e * stride, columns);
#pragma GCC unroll 4
        for (int n = 0; n < count; n++) found[n] = fused_lanes(all(scores[n * wide + e]), values, found[n]);
    }
#pragma GCC unroll 4
    for (int n = 0; n < count; n++) store(y + n * a->heads * a->d, found[n], columns);
}

static inline __attribute__((always_inline)) void ask_all(
    const whole count, const Attention *a, const float *q, const float *turned, const float *v, whole stride,
    const float *bias, float *scores, float *y) {
    whole wide = groups(a->entries, 16) * 16;
    score_all(count, a, q, turned, wide, bias, scores);
    for (whole n = 0; n < count; n++) softmax(scores + n * wide, a->entries);
    for (whole left = 0; left < a->d; left += 16)
        gather_all(count, a, scores, wide, v + left, stride, a->d - left, y + left);
}

/* `queries` to the same keys and values, one `stride` after the other. */
static void ask_together(
    whole queries, const Attention *a, const float *q, const float *turned, const float *v, whole stride,
    const float *bias, float *scores, float *y) {
    for (; queries > 0; queries -= QUERIES, q += QUERIES * a->stride, y += QUERIES * a->heads * a->d)
        switch (smaller(QUERIES, queries)) {
        case 1: ask_all(1, a, q, turned, v, stride, bias, scores, y); break;
        case 2: ask_all(2, a, q, turned, v, stride, bias, scores, y); break;
        case 3: ask_all(3, a, q, turned, v, stride, bias, scores, y); break;
        default: ask_all(4, a, q, turned, v, stride, bias, scores, y);
        }
}

size_t attend_all_bytes(whole length, whole d) { return groups(length, 16) * 16 * (d + QUERIES) * sizeof(float); }

/* Every one of a sentence's `entries` asks all of them: q, new_k and new_v (B E, H, d) in rows, bias (B, E) if any. */
void team_attend_all(whole sentences, const Attention *a, char *room) {
    whole begin, end, E = a->entries, d = a->d, wide = groups(E, 16) * 16;
    float *turned = (float *)(room + omp_get_thread_num() * attend_all_bytes(E, d)), *scores = turned + d * wide;
    share(sentences * a->heads, &begin, &end);
    for (whole pair = begin; pair < end; pair++) {
        whole sentence = pair / a->heads, head = pair % a->heads, first = sentence * E;
        const float *bias = a->bias ? a->bias + first : NULL, *k = a->new_k + first * a->stride + head * d;
        const float *v = a->new_v + first * a->stride + head * d, *q = a->q + first * a->stride + head * d;
        float *y = a->y + (first * a->heads + head) * d;
        for (whole i = 0; i < d; i++)
            for (whole e = 0; e < wide; e++) turned[i * wide + e] = e < E ? k[e * a->stride + i] : 0;
        ask_together(E, a, q, turned, v, a->stride, bias, scores, y);
    }
#pragma omp barrier
}

size_t attend_source_bytes(whole length) { return groups(length, 16) * 16 * QUERIES * sizeof(float); }

/* A sentence's beams ask all of its source: q in rows, k (B, H, d, wide) turned, v (B, H, E, d), bias (B, E) if any. */
void team_attend_source(whole sentences, const Attention *a, char *room) {
    whole begin, end, K = a->beams, E = a->entries, d = a->d, wide = groups(E, 16) * 16;
    float *scores = (float *)(room + omp_get_thread_num() * attend_source_bytes(E));
    share(sentences * a->heads, &begin, &end);
    for (whole pair = begin; pair < end; pair++) {
        whole sentence = pair / a->heads, head = pair % a->heads, row = sentence * K;
        const float *bias = a->bias ? a->bias + sentence * E : NULL, *q = a->q + row * a->stride + head * d;
        ask_together(K, a, q, a->k + pair * d * wide, a->v + pair * E * d, d, bias, scores,
                     a->y + (row * a->heads + head) * d);
    }
#pragma omp barrier
}
