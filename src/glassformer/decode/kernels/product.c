/* y = relu(x W^T + bias) + add: x (rows, in), y (rows, out), W in panels; x and W rounded to bfloat16 or int8, or not. */
#include "int8.h"
#ifdef __AMX_INT8__
#include "tiles.h"
enum { MANY = 9 }; /* from so many rows on tiles are faster */
#else
enum { MANY = 0 };
int permitted(void) { return 1; }
#endif

enum { BLOCK = 32 }; /* rows whose sums are formed at once */
enum { CHUNK = 4 };  /* blocks that stay in a cache while all panels pass by */

/* Rows rounded. As tiles: 16 rows, group of inputs, row, 64 bytes; else row by row. */
typedef struct {
    int tiled;
    whole steps; /* groups of inputs */
    char *numbers;
    float *scale; /* of each row: int8 is a multiple of it */
#ifdef TAMED
    int32_t *excess, *tamed; /* of each row: 128 times the sum of its inputs; its rests */
    Rest *rests;             /* of each row, with room for all */
#endif
} Rounded;

static Rounded rounded(const Matrix *matrix, whole rows, char *room) {
    whole padded = groups(rows, 16) * 16;
    Rounded x = {matrix->kind == BFLOAT16 || (MANY && rows >= MANY), groups(matrix->in, 64), room, NULL};
    if (matrix->kind == BFLOAT16) x.steps = groups(matrix->in, 32);
    x.scale = (float *)(room + padded * x.steps * 64 * sizeof(Number));
#ifdef TAMED
    x.excess = (int32_t *)(x.scale + padded);
    x.tamed = x.excess + padded;
    x.rests = (Rest *)(x.tamed + padded);
#endif
    return x;
}

/* 64 inputs, or as many as there are; zeros follow. */
#define ROUND(Type, offset)                                                                                            \
    static inline void round_##Type(const float *x, whole count, float factor, Type *to) {                             \
        float some[64] = {0};                                                                                          \
        if (count < 64) {                                                                                              \
            for (whole i = 0; i < count; i++) some[i] = x[i];                                                          \
            x = some;                                                                                                  \
        }                                                                                                              \
        for (int i = 0; i < 64; i++) to[i] = (Type)((int32_t)rintf(x[i] * factor) + offset);                           \
    }
ROUND(Number, OFFSET)
#ifdef __AMX_INT8__
ROUND(int8_t, 0)

static void bfloat16_row(const Rounded *to, whole row, const float *x, whole in) {
    char *tile = to->numbers + row / 16 * to->steps * TILE + row % 16 * 64;
    for (whole i = 0; i < to->steps * 32; i += 16) {
        lanes part = load(x + i, i < in ? in - i : 0);
        _mm256_store_si256((__m256i *)(tile + i / 32 * TILE + i % 32 * 2),
                           (__m256i)_mm512_cvtneps_pbh((__m512)part.part[0]));
    }
}
#endif

static void int8_row(const Rounded *to, whole row, const float *x, whole in) {
    union {
        int32_t bits;
        float number;
    } highest = {.number = 1e-30f}, some;
    for (whole i = 0; i < in; i++) { /* numbers without a sign have the order of their bits, and NaN is above all */
        int32_t bits = ((const int32_t *)x)[i] & 0x7fffffff;
        highest.bits = bits > highest.bits ? bits : highest.bits;
    }
    some = highest;
    float factor = 127 / some.number;
    to->scale[row] = some.number / 127; /* so that NaN stays NaN */
#ifdef TAMED
    Rest *rests = to->rests + row * to->steps * 16;
    whole tamed = 0;
    int32_t sum = 0;
#endif
    for (whole step = 0; step < to->steps; step++) {
        const float *from = x + step * 64;
#ifdef __AMX_INT8__
        if (to->tiled) {
            char *tile = to->numbers + (row / 16 * to->steps + step) * TILE + row % 16 * 64;
            round_int8_t(from, in - step * 64, factor, (int8_t *)tile);
            continue;
        }
#endif
        Number *numbers = (Number *)to->numbers + (row * to->steps + step) * 64;
        round_Number(from, in - step * 64, factor, numbers);
#ifdef TAMED
        tamed = tame(numbers, step * 16, rests, tamed, &sum);
    }
    for (; tamed % RESTS; tamed++) rests[tamed] = (Rest){0};
    to->excess[row] = 128 * sum;
    to->tamed[row] = tamed;
#else
    }
#endif
}

/* The sums of up to BLOCK rows from `top` on, by one panel. */
static void block_sums(int kind, const Rounded *x, whole top, whole rows, const char *w, int32_t *sums) {
#ifdef __AMX_INT8__
    if (x->tiled) return tile_sums(kind, rows, x->steps, x->numbers + top * x->steps * 64, w, sums);
#endif
    (void)kind;
    const Number *given = (const Number *)x->numbers + top * x->steps * 64;
    for (whole row = 0; row < rows; row += AT_ONCE) {
        whole n = smaller(AT_ONCE, rows - row);
        any_dots(n, x->steps, given + row * x->steps * 64, x->steps * 64, 64, w, sums + row * PANEL);
    }
#ifdef TAMED
    for (whole row = 0; row < rows; row++)
        add_rests(x->rests + (top + row) * x->steps * 16, x->tamed[top + row], x->steps, w, sums + row * PANEL);
#endif
}

/* To y, one row `stride` after the other. */
static void put_block(
    const Matrix *matrix, const Rounded *x, const int32_t *sums, whole top, whole rows, whole left, const float *add,
    float *y, whole stride) {
    const int moved = OFFSET && !x->tiled;
    for (whole row = 0; row < rows; row++)
        for (whole column = left; column < smaller(matrix->out, left + PANEL); column += HALF) {
            const loose_bits *found = (const loose_bits *)(sums + row * PANEL + column - left);
            lanes all;
            if (matrix->kind == BFLOAT16) all = load((const float *)found, 16);
            else
                EACH_PART {
                    bits exact = found[p];
                    if (moved) exact -= ((const loose_bits *)(matrix->excess + column))[p];
#ifdef TAMED
                    exact -= x->excess[top + row];
#endif
                    native scale = x->scale[top + row] * ((const loose *)(matrix->scales + column))[p];
                    all.part[p] = __builtin_convertvector(exact, native) * scale;
                }
            put(matrix, all, column, row * stride + column - left, add, y);
        }
}

size_t product_bytes(int threads, const Matrix *matrix, whole rows) {
    if (matrix->kind == FLOAT32) return (threads * PANEL + matrix->in) * rows * sizeof(float);
    whole width = groups(matrix->in, matrix->kind == INT8 ? 64 : 32) * 64 * sizeof(Number);
#ifdef TAMED
    width += width / 4 * sizeof(Rest) + 2 * sizeof(int32_t);
#endif
    return groups(rows, 16) * 16 * (width + sizeof(float));
}

/* This thread's rows rounded; all threads meet before others read them. */
static Rounded team_rounded(const Matrix *matrix, whole rows, const float *x, void *room) {
    whole begin, end;
    const Rounded to = rounded(matrix, rows, room);
    share(rows, &begin, &end);
    for (whole row = begin; row < end; row++) {
        const float *from = x + row * matrix->in;
#ifdef __AMX_INT8__
        if (matrix->kind == BFLOAT16) {
            bfloat16_row(&to, row, from, matrix->in);
            continue;
        }
#endif
        int8_row(&to, row, from, matrix->in);
    }
#ifdef __AMX_INT8__
    if (to.tiled) begin_tiles();
#endif
#pragma omp barrier
    return to;
}

static void team_done(const Rounded *x) {
#ifdef __AMX_INT8__
    if (x->tiled) end_tiles();
#endif
    (void)x;
#pragma omp barrier
}

void team_product(const Matrix *matrix, whole rows, const float *x, const float *add, float *y, void *room) {
    if (!rows) return;
    if (matrix->kind == FLOAT32) return team_float32(matrix, rows, x, add, y, room);
    whole begin, end, out = matrix->out, panels = groups(out, PANEL), blocks = groups(rows, BLOCK);
    int32_t sums[BLOCK * PANEL] __attribute__((aligned(64)));
    const Rounded to = team_rounded(matrix, rows, x, room);
    share(panels * blocks, &begin, &end);
    for (whole item = begin; item < end; item++) {
        whole chunk = item / (panels * CHUNK), within = item % (panels * CHUNK);
        whole wide = smaller(CHUNK, blocks - chunk * CHUNK), panel = within / wide, left = panel * PANEL;
        whole top = (chunk * CHUNK + within % wide) * BLOCK, count = smaller(BLOCK, rows - top), place = top * out + left;
        const char *w = (const char *)matrix->table + panel * to.steps * 2 * TILE;
        block_sums(matrix->kind, &to, top, count, w, sums);
        put_block(matrix, &to, sums, top, count, left, add ? add + place : NULL, y + place, out);
    }
    team_done(&to);
}

int product(int threads, const Matrix *matrix, whole rows, const float *x, const float *add, float *y) {
    void *room = scratch(product_bytes(threads, matrix, rows));
    if (!room) return 1;
#pragma omp parallel num_threads(threads)
    team_product(matrix, rows, x, add, y, room);
    return 0;
}

/* What a thread has found of each row. */
typedef struct {
    float *best;
    int64_t *ids, *found;
} Found;

static Found found_by(whole thread, whole rows, whole count, char *room) {
    Found f;
    whole bytes = rows * (count * 12 + 8);
    f.ids = (int64_t *)(room + thread * groups(bytes, 64) * 64);
    f.found = f.ids + rows * count;
    f.best = (float *)(f.found + rows);
    return f;
}

size_t rank_bytes(int threads, const Matrix *matrix, whole rows, whole count) {
    whole segments = groups(matrix->out, SEGMENT);
    return groups(product_bytes(threads, matrix, rows), 64) * 64 + groups(rows * segments * 8, 64) * 64 +
           threads * (groups(rows * (count * 12 + 8), 64) * 64 + BLOCK * SEGMENT * sizeof(float));
}

void team_rank(const Matrix *matrix, whole rows, const float *x, const Ranking *to, void *room) {
    whole begin, end, segments = groups(matrix->out, SEGMENT), blocks = groups(rows, BLOCK), N = to->count;
    whole threads = omp_get_num_threads(), thread = omp_get_thread_num();
    int32_t sums[BLOCK * PANEL] __attribute__((aligned(64)));
    char *rest = (char *)room + groups(product_bytes(threads, matrix, rows), 64) * 64;
    float *highest = (float *)rest, *total = highest + rows * segments;
    rest += groups(rows * segments * 8, 64) * 64;
    float *tile = (float *)rest + thread * BLOCK * SEGMENT; /* a block's outputs of a segment */
    rest += threads * BLOCK * SEGMENT * sizeof(float);
    const Found own = found_by(thread, rows, N, rest);
    memset(own.found, 0, rows * sizeof(int64_t));
    const Rounded given = team_rounded(matrix, rows, x, room);
    share(segments * groups(blocks, CHUNK), &begin, &end);
    for (whole item = begin; item < end; item++) {
        whole chunk = item / segments, segment = item % segments, first = segment * SEGMENT;
        whole wide = smaller(SEGMENT, matrix->out - first);
        for (whole block = chunk * CHUNK; block < smaller(blocks, (chunk + 1) * CHUNK); block++) {
            whole top = block * BLOCK, count = smaller(BLOCK, rows - top);
            for (whole left = 0; left < wide; left += PANEL) {
                const char *w = (const char *)matrix->table + (first + left) / PANEL * given.steps * 2 * TILE;
                block_sums(matrix->kind, &given, top, count, w, sums);
                put_block(matrix, &given, sums, top, count, first + left, NULL, tile + left, SEGMENT);
            }
            for (whole row = top; row < top + count; row++) {
                const float *y = tile + (row - top) * SEGMENT;
                float *best = own.best + row * N, *high = highest + row * segments + segment;
                look_at(y, wide, high, total + row * segments + segment);
                if (own.found[row] < N || *high > best[N - 1])
                    own.found[row] = ranked(y, wide, first, best, own.ids + row * N, own.found[row], N);
            }
        }
    }
    team_done(&given);
    share(rows, &begin, &end);
    for (whole row = begin; row < end; row++) {
        whole found = 0; /* threads have found the segments of a row one after the other */
        for (whole n = 0; n < threads; n++) {
            const Found theirs = found_by(n, rows, N, rest);
            for (whole i = 0; i < theirs.found[row]; i++)
                found = insert(to->best + row * N, to->ids + row * N, found, N, theirs.best[row * N + i],
                               theirs.ids[row * N + i]);
        }
        to->normaliser[row] = normaliser_of(highest + row * segments, total + row * segments, segments);
    }
#pragma omp barrier
}
