/* What a decoding step on a CPU spends its time on: a few rows times a large matrix, and one query's attention to the
 * keys kept so far. Libraries are made for many rows and leave half of the processor idle here.
 *
 * A matrix is cut into panels of 32 outputs and lies in memory in the order in which it is read:
 *
 *     float32     panel, input, output                                 32 numbers for each input
 *     bfloat16    panel, half, group of 32 inputs, pair, output, 2     a group of a half is 1 kB: one tile of AMX
 *     int8        panel, half, group of 64 inputs, four, output, 4
 *
 * Each row's sums are formed in one fixed order, so that no result depends on the rows beside it; and in the same order
 * at each level of instructions, so that none depends on the processor either.
 *
 * What needs memory of its own returns 0, or 1 if there was none; then its result is not there.
 *
 * A `team_` function is called by all threads of a parallel region. They share its work and meet before it returns.
 */
#pragma once
#include "lanes.h"
#include <omp.h>
#include <stddef.h>
#include <stdlib.h>

enum { PANEL = 32, HALF = 16 };
enum { FLOAT32 = 0, BFLOAT16 = 1, INT8 = 2 };
enum { NO_TOKEN = -1 };

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

/* A piece of memory that is handed out part by part; from none it only counts. */
typedef struct {
    char *from;
    size_t taken;
} Arena;

static inline void *take(Arena *arena, size_t bytes) {
    void *place = arena->from ? arena->from + arena->taken : NULL;
    arena->taken += (bytes + 63) / 64 * 64;
    return place;
}

/* y = relu(x W^T + bias) + add. */
typedef struct {
    int kind, relu;
    whole in, out;
    const void *table;
    const float *scales;   /* of each output, to the end of the last panel: int8 is a multiple of it */
    const int32_t *excess; /* likewise: 128 times the sum of its int8 */
    const float *bias;     /* of each output, or none */
} Matrix;

/* Memory that a product of so many rows needs. */
size_t product_bytes(int threads, const Matrix *matrix, whole rows);
void team_product(const Matrix *matrix, whole rows, const float *x, const float *add, float *y, void *room);
void team_float32(const Matrix *matrix, whole rows, const float *x, const float *add, float *y, float *room);

/* The `count` highest outputs of each row, highest first, the earlier one first among equals; and the logarithm of the
 * sum of all outputs' exponentials. */
typedef struct {
    whole count;
    float *best;       /* (rows, count) */
    int64_t *ids;      /* likewise */
    float *normaliser; /* (rows) */
} Ranking;

size_t rank_bytes(int threads, const Matrix *matrix, whole rows, whole count);
void team_rank(const Matrix *matrix, whole rows, const float *x, const Ranking *to, void *room);

/* See rank.c. A row's outputs are looked at in segments: so that each is still at hand after its product. */
enum { SEGMENT = 256 };
void look_at(const float *x, whole size, float *highest, float *total);
float normaliser_of(const float *highest, const float *total, whole segments);
whole ranked(const float *x, whole size, whole first, float *best, int64_t *ids, whole found, whole count);
int normalise(int threads, whole rows, whole size, const float *logits, float *found);
void highest(int threads, whole rows, whole size, whole count, const float *logits, float *best, int64_t *places);

/* Put `value` with its `item` among the highest `size`, of which `count` are there; the earlier first among equals. */
static inline whole insert(float *values, int64_t *items, whole count, whole size, float value, int64_t item) {
    whole place = count;
    if (count == size && !(value > values[size - 1])) return count;
    if (count == size) place = size - 1;
    for (; place > 0 && value > values[place - 1]; place--) {
        values[place] = values[place - 1];
        items[place] = items[place - 1];
    }
    values[place] = value;
    items[place] = item;
    return count == size ? size : count + 1;
}

/* Sums on their way out: `x` are those of 16 outputs, from `column` on; `place` is theirs in y. */
static inline void put(const Matrix *matrix, lanes x, whole column, whole place, const float *add, float *y) {
    whole count = matrix->out - column;
    if (matrix->bias) x = plus(x, load(matrix->bias + column, count));
    if (matrix->relu) x = not_below_zero(x);
    if (add) x = plus(x, load(add + place, count));
    store(y + place, x, count);
}

/* See attend.c. Shapes: B sentences of K beams, H heads, E entries of a cache that has room for more, d head width. */
typedef struct {
    whole beams, heads, d, entries, room;
    const float *q, *new_k, *new_v; /* (B K, H, d), one row `stride` after the other; new ones may be missing */
    whole stride;
    float *k, *v;      /* (B, H, room, d): beams share what their sentence keeps */
    const float *bias; /* or none; found by its steps along B, H, K and E */
    whole steps[4];
    const int32_t *seen; /* (B, K, limit): which entries each beam sees, `count` of them; if none, all that have a bias */
    whole limit, count;
    float scale;
    float *y; /* (B K, H, d) */
    const int64_t *places; /* (B): k and v may be those of more sentences, and these are where; none: one by one */
} Attention;

/* Where in k and v, counted in heads. */
static inline whole kept_at(const Attention *a, whole sentence, whole head) {
    return (a->places ? a->places[sentence] : sentence) * a->heads + head;
}

size_t attend_bytes(whole entries); /* for each thread */
void team_attend(whole sentences, const Attention *a, char *room);
size_t attend_all_bytes(whole length, whole d);
void team_attend_all(whole sentences, const whole *starts, const Attention *a, char *room);
size_t attend_source_bytes(whole length);
void team_attend_source(whole sentences, const int64_t *lengths, const Attention *a, char *room);

/* See choose.c. Shapes: B sentences, K beams, L the longest target, N likeliest tokens of each row. */
typedef struct {
    whole sentences, beams, limit, each, likely; /* each: rows of a sentence, 1 after the prompt; likely: N */
    whole worst;                                 /* which of those that are done is to be beaten */
    int64_t end;
    const float *best, *normaliser; /* (B each, N), (B each) */
    const int64_t *ids;             /* (B each, N) */
    const float *divisor, *reach;   /* (L + 1) of the length rule; (B) what may at best be divided by, none: that */
    const int64_t *limits;          /* (B): tokens at most, L or fewer */
    int64_t *step, *written, *done, *tokens, *origin; /* (1), (B, K, L) twice, (B, K) twice */
    float *running, *done_scores;   /* (B, K) */
    uint8_t *going;                 /* (B) */
    float *sums, *done_sums;        /* (B, K, L) */
} Beams;

int choose_beams(int threads, const Beams *s);

/* See forbid.c. Shapes: B sentences, T tokens before each target, P placeholders. */
typedef struct {
    whole ngram;           /* so many tokens in a row come once only; 0: as often as they like */
    whole before;          /* T */
    const int64_t *prompt; /* (B, T) */
    whole placeholders;    /* P */
    const int64_t *ids;    /* (P) */
    const uint8_t *wanted; /* (B, P): which of them each target writes, once */
} Bans;

int forbid(int threads, const Bans *s, const Beams *beams, whole vocabulary, float *logits);
