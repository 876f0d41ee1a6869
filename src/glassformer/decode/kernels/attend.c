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
        whole sentence = pair / a->heads, head = pair % a->heads, at = kept_at(a, sentence, head) * a->room * d;
        float *k = a->k + at, *v = a->v + at;
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

/* Keys and values that several queries ask. Of `wide` entries, the next multiple of 16, scores are formed. */
typedef struct {
    whole entries, wide;
    const float *keys; /* (d, entries): turned, a row `far` after the other */
    whole far;
    const float *values; /* (entries, d), a row `stride` after the other */
    whole stride;
} Asked;

/* Of `count` <= QUERIES queries to all keys. */
static inline __attribute__((always_inline)) void score_all(
    const whole count, const Attention *a, const Asked *of, const float *q, float *scores) {
    for (whole e = 0; e < of->wide; e += 16) {
        lanes found[QUERIES];
#pragma GCC unroll 4
        for (int n = 0; n < count; n++) found[n] = all(0);
        for (whole i = 0; i < a->d; i++) {
            lanes keys = load(of->keys + i * of->far + e, 16);
#pragma GCC unroll 4
            for (int n = 0; n < count; n++) found[n] = fused_lanes(all(q[n * a->stride + i]), keys, found[n]);
        }
#pragma GCC unroll 4
        for (int n = 0; n < count; n++) store(scores + n * of->wide + e, times(found[n], all(a->scale)), 16);
    }
}

/* 16 columns of what they gather. */
static inline __attribute__((always_inline)) void gather_all(
    const whole count, const Attention *a, const Asked *of, const float *scores, whole left, float *y) {
    lanes found[QUERIES];
#pragma GCC unroll 4
    for (int n = 0; n < count; n++) found[n] = all(0);
    for (whole e = 0; e < of->entries; e++) {
        lanes values = load(of->values + e * of->stride + left, a->d - left);
#pragma GCC unroll 4
        for (int n = 0; n < count; n++) found[n] = fused_lanes(all(scores[n * of->wide + e]), values, found[n]);
    }
#pragma GCC unroll 4
    for (int n = 0; n < count; n++) store(y + n * a->heads * a->d + left, found[n], a->d - left);
}

static inline __attribute__((always_inline)) void ask_all(
    const whole count, const Attention *a, const Asked *of, const float *q, float *scores, float *y) {
    score_all(count, a, of, q, scores);
    for (whole n = 0; n < count; n++) softmax(scores + n * of->wide, of->entries);
    for (whole left = 0; left < a->d; left += 16) gather_all(count, a, of, scores, left, y);
}

/* Queries one `stride` after the other. */
static void ask_together(
    whole queries, const Attention *a, const Asked *of, const float *q, float *scores, float *y) {
    for (; queries > 0; queries -= QUERIES, q += QUERIES * a->stride, y += QUERIES * a->heads * a->d)
        switch (smaller(QUERIES, queries)) {
        case 1: ask_all(1, a, of, q, scores, y); break;
        case 2: ask_all(2, a, of, q, scores, y); break;
        case 3: ask_all(3, a, of, q, scores, y); break;
        default: ask_all(4, a, of, q, scores, y);
        }
}

size_t attend_all_bytes(whole length, whole d) { return groups(length, 16) * 16 * (d + QUERIES) * sizeof(float); }

/* Every row of a sentence asks all of them: q, new_k and new_v (R, H, d); `sentence` has its first at
 * starts[sentence], and at most `entries`. */
void team_attend_all(whole sentences, const whole *starts, const Attention *a, char *room) {
    whole begin, end, d = a->d;
    float *scores = (float *)(room + omp_get_thread_num() * attend_all_bytes(a->entries, d));
    float *turned = scores + groups(a->entries, 16) * 16 * QUERIES;
    share(sentences * a->heads, &begin, &end);
    for (whole pair = begin; pair < end; pair++) {
        whole sentence = pair / a->heads, head = pair % a->heads, first = starts[sentence];
        whole E = starts[sentence + 1] - first, wide = groups(E, 16) * 16, place = first * a->stride + head * d;
        const Asked of = {E, wide, turned, wide, a->new_v + place, a->stride};
        const float *k = a->new_k + place;
        for (whole i = 0; i < d; i++)
            for (whole e = 0; e < wide; e++) turned[i * wide + e] = e < E ? k[e * a->stride + i] : 0;
        ask_together(E, a, &of, a->q + place, scores, a->y + (first * a->heads + head) * d);
    }
#pragma omp barrier
}

size_t attend_source_bytes(whole length) { return groups(length, 16) * 16 * QUERIES * sizeof(float); }

/* A sentence's beams ask all of its source: q in rows, k (B, H, d, wide) turned, v (B, H, E, d), of which `lengths` (B)
 * count. */
void team_attend_source(whole sentences, const int64_t *lengths, const Attention *a, char *room) {
    whole begin, end, K = a->beams, d = a->d, wide = groups(a->entries, 16) * 16;
    float *scores = (float *)(room + omp_get_thread_num() * attend_source_bytes(a->entries));
    share(sentences * a->heads, &begin, &end);
    for (whole pair = begin; pair < end; pair++) {
        whole sentence = pair / a->heads, head = pair % a->heads, row = sentence * K, E = lengths[sentence];
        whole at = kept_at(a, sentence, head);
        const Asked of = {E, groups(E, 16) * 16, a->k + at * d * wide, wide, a->v + at * a->entries * d, d};
        ask_together(K, a, &of, a->q + row * a->stride + head * d, scores, a->y + (row * a->heads + head) * d);
    }
#pragma omp barrier
}
