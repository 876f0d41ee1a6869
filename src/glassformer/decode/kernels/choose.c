/* What greedy.py and beam.py do with the likeliest tokens of a step, in one call.
 *
 * Shapes: B sentences, K beams, C candidates (at most 2 K), L the longest target, N likeliest tokens of each row.
 */
#include "common.h"

typedef struct {
    whole sentences, limit;
    int64_t end, pad;
    const float *best, *normaliser; /* (B) each */
    const int64_t *ids;             /* (B) */
    int64_t *step, *written, *tokens; /* (1), (B, L), (B) */
    float *scores, *sums;           /* (B), (B, L) */
    uint8_t *going;                 /* (B) */
} Greedy;

void choose_greedy(const Greedy *g) {
    for (whole b = 0; b < g->sentences; b++) {
        int64_t token = g->ids[b];
        if (g->going[b]) {
            g->scores[b] += g->best[b] - g->normaliser[b];
            g->written[b * g->limit + *g->step] = token;
            g->sums[b * g->limit + *g->step] = g->scores[b];
            g->going[b] = token != g->end;
        }
        g->tokens[b] = g->going[b] ? token : g->pad;
    }
    ++*g->step;
}

typedef struct {
    float total;
    int64_t token;
    whole parent;
    int ends;
} Candidate;

static void sentence_beams(const Beams *s, whole b, char *room) {
    whole K = s->beams, N = s->likely, L = s->limit, step = *s->step, length = step + 1, C = 0, kept = 0, ended = 0;
    int64_t *written = s->written + b * K * L, *done = s->done + b * K * L, *copies = (int64_t *)room;
    Candidate *candidates = (Candidate *)(copies + 2 * K * L);
    float *values = (float *)(candidates + 2 * K), *running = s->running + b * K, *scores = s->done_scores + b * K;
    int64_t *items = (int64_t *)(values + 2 * K), *from = items + 2 * K;
    float *sums = s->sums + b * K * L, *done_sums = s->done_sums + b * K * L, *sum_copies = (float *)(from + 2 * K);
    for (whole beam = 0; beam < K; beam++) {
        whole row = b * s->each + (s->each > 1 ? beam : 0);
        for (whole n = 0; n < N; n++) {
            float total = running[beam] + (s->best[row * N + n] - s->normaliser[row]);
            C = insert(values, items, C, 2 * K, total, beam * N + n);
        }
    }
    for (whole c = 0; c < C; c++) {
        whole beam = items[c] / N, row = b * s->each + (s->each > 1 ? beam : 0);
        int64_t token = s->ids[row * N + items[c] % N];
        candidates[c] = (Candidate){values[c], token, beam, token == s->end || length == s->limits[b]};
    }
    memcpy(copies, written, K * L * sizeof(int64_t));
    memcpy(copies + K * L, done, K * L * sizeof(int64_t));
    memcpy(sum_copies, sums, K * L * sizeof(float));
    memcpy(sum_copies + K * L, done_sums, K * L * sizeof(float));
    /* Those that are done: the best of those that were, and of those that end here among the best K. */
    for (whole k = 0; k < K; k++) ended = insert(values, from, ended, K, scores[k], k);
    for (whole c = 0; c < smaller(C, K); c++)
        if (candidates[c].ends && s->going[b])
            ended = insert(values, from, ended, K, candidates[c].total / s->divisor[length], K + c);
    for (whole k = 0; k < K; k++) {
        int finishing = from[k] >= K;
        whole source = finishing ? candidates[from[k] - K].parent : K + from[k];
        scores[k] = values[k];
        memcpy(done + k * L, copies + source * L, L * sizeof(int64_t));
        memcpy(done_sums + k * L, sum_copies + source * L, L * sizeof(float));
        if (finishing) {
            done[k * L + step] = candidates[from[k] - K].token;
            done_sums[k * L + step] = candidates[from[k] - K].total;
        }
    }
    for (whole c = 0; c < C; c++) kept = insert(values, from, kept, K, candidates[c].ends ? -INFINITY : candidates[c].total, c);
    for (whole k = 0; k < kept; k++) {
        const Candidate *one = candidates + from[k];
        running[k] = values[k];
        memcpy(written + k * L, copies + one->parent * L, L * sizeof(int64_t));
        written[k * L + step] = one->token;
        memcpy(sums + k * L, sum_copies + one->parent * L, L * sizeof(float));
        sums[k * L + step] = one->total;
        s->origin[b * K + k] = one->parent;
        s->tokens[b * K + k] = one->token;
    }
    float reach = s->reach ? s->reach[b] : s->divisor[length];
    s->going[b] &= running[0] / reach > scores[s->worst] && length < s->limits[b];
}

int choose_beams(int threads, const Beams *s) {
    whole K = s->beams;
    size_t bytes = groups(2 * K * s->limit * (8 + 4) + 2 * K * (sizeof(Candidate) + 4 + 16) + 64, 64) * 64;
    char *room = scratch(threads * bytes);
    if (!room) return 1;
#pragma omp parallel num_threads(threads)
    {
        whole begin, end;
        share(s->sentences, &begin, &end);
        for (whole b = begin; b < end; b++) sentence_beams(s, b, room + omp_get_thread_num() * bytes);
    }
    ++*s->step;
    return 0;
}
