/* A whole stack in one call: an encoder's reading of its sources, or a decoder's step of one new token for each row.
 *
 * What is computed is the forward of model/transformer.py and model/layer.py. Threads meet several times in each layer;
 * nothing else lies between its parts.
 *
 * Shapes: B sentences, S source, K beams, R rows (B S, or B K), D model width, H heads, d head width, V vocabulary.
 */
#include "common.h"

enum { NONE = 0, LAYER = 1, RMS = 2 };

typedef struct {
    int kind;
    float eps;
    const float *weight, *bias;
} Norm;

typedef struct {
    Norm self_norm, cross_norm, feed_norm;
    Matrix self_in, self_out, cross_in, cross_out, up, down; /* of an encoder's layer no cross_in and cross_out */
} Layer;

typedef struct {
    whole layers, width, heads, d;
    float scale; /* of attention */
    int pre;     /* norms stand before their sublayers, not after */
    const Layer *layer;
    Norm last;
    const float *tokens;      /* (V, D): the embedding; or */
    const int8_t *rounded;    /* the same in int8, */
    const float *row_scales;  /* (V) each row a multiple of this */
    float token_scale;
    const float *positions; /* (any, D) */
} Stack;

/* What a decoder's layer keeps of the source. */
typedef struct {
    Matrix project;
    whole heads, d;
    float *k, *v; /* (B, H, d, S up to the next 16): turned; (B, H, S, d) */
} Source;

/* What it reads at a step. */
typedef struct {
    float *k, *v, *source_k, *source_v; /* (B, H, room, d) twice, and of the source what encode made */
} Kept;

typedef struct {
    whole sentences, beams, step, room, source;
    const int64_t *ids;       /* (R) */
    const Kept *kept;         /* of each layer */
    int32_t *seen, *before;   /* (B, K, limit): the entries that are a beam's own past, and were; none: all entries */
    const int64_t *origin;    /* (B, K): the beam that each was at the last step */
    whole limit;
    const int64_t *lengths; /* (B): of S entries, so many are the source's */
    const int64_t *places;  /* (B): which of the sentences in Kept; those that have left are still there */
    Matrix head;
    float *logits;   /* (R, V); or none, */
    Ranking ranking; /* and only the highest of them */
} Step;

typedef struct {
    float *x, *y, *wide, *context;
    char *products, *scores;
} Buffers;

/* `most` is what anything else needs for a product. */
static Buffers buffers(Arena *arena, int threads, const Stack *s, whole rows, size_t scores, size_t most) {
    size_t bytes;
    whole wide = 3 * s->heads * s->d;
    for (whole i = 0; i < s->layers; i++) {
        const Matrix *all[] = {&s->layer[i].self_in, &s->layer[i].self_out, &s->layer[i].up, &s->layer[i].down};
        for (int n = 0; n < 4; n++) most = (bytes = product_bytes(threads, all[n], rows)) > most ? bytes : most;
        wide = s->layer[i].up.out > wide ? s->layer[i].up.out : wide;
    }
    return (Buffers){take(arena, rows * s->width * sizeof(float)),
                     take(arena, rows * s->width * sizeof(float)),
                     take(arena, rows * wide * sizeof(float)),
                     take(arena, rows * s->heads * s->d * sizeof(float)),
                     take(arena, most),
                     take(arena, threads * scores)};
}

/* This thread's rows of y: those of x, each brought to one scale. x may be y. */
static void norm_rows(const Norm *norm, whole rows, whole width, const float *x, float *y) {
    whole begin, end;
    share(rows, &begin, &end);
    for (whole row = begin; row < end; row++) {
        const float *from = x + row * width;
        float *to = y + row * width;
        lanes total = all(0), mean = all(0);
        if (norm->kind == LAYER) {
            for (whole i = 0; i < width; i += 16) total = plus(total, load(from + i, width - i));
            mean = all(-sum(total) / width);
            total = all(0);
        }
        for (whole i = 0; i < width; i += 16) {
            store(to + i, plus(load(from + i, width - i), mean), width - i);
            lanes some = load(to + i, width - i);
            total = fused_lanes(some, some, total);
        }
        lanes factor = all(1 / sqrtf(sum(total) / width + norm->eps));
        for (whole i = 0; i < width; i += 16) {
            lanes some = times(times(load(to + i, width - i), factor), load(norm->weight + i, width - i));
            if (norm->bias) some = plus(some, load(norm->bias + i, width - i));
            store(to + i, some, width - i);
        }
    }
}

static const float *before(const Stack *s, const Norm *norm, whole rows, const Buffers *b) {
    if (s->pre) norm_rows(norm, rows, s->width, b->x, b->y);
    return s->pre ? b->y : b->x;
}

static void after(const Stack *s, const Norm *norm, whole rows, const Buffers *b) {
    if (!s->pre) norm_rows(norm, rows, s->width, b->x, b->x);
}

static void feed_forward(const Stack *s, const Layer *layer, whole rows, const Buffers *b) {
    const float *x = before(s, &layer->feed_norm, rows, b);
    team_product(&layer->up, rows, x, NULL, b->wide, b->products);
    team_product(&layer->down, rows, b->wide, b->x, b->x, b->products);
    after(s, &layer->feed_norm, rows, b);
}

/* A token at a position. */
static void embed(const Stack *s, int64_t id, whole position, float *x) {
    whole D = s->width, from = id * D;
    const float *place = s->positions + position * D;
    for (whole i = 0; s->tokens && i < D; i++) x[i] = s->tokens[from + i] * s->token_scale + place[i];
    for (whole i = 0; !s->tokens && i < D; i++)
        x[i] = s->rounded[from + i] * s->row_scales[id] * s->token_scale + place[i];
}

/* A decoder's layer takes from memory's rows what it will ask; `sentence` has its first row at starts[sentence]. */
static void keep_source(const Source *to, const float *projected, whole sentences, whole length, const whole *starts) {
    whole begin, end, H = to->heads, d = to->d, wide = groups(length, 16) * 16;
    share(sentences, &begin, &end);
    for (whole sentence = begin; sentence < end; sentence++)
        for (whole n = 0; n < starts[sentence + 1] - starts[sentence]; n++)
            for (whole head = 0; head < H; head++) {
                whole pair = sentence * H + head;
                const float *from = projected + (starts[sentence] + n) * 2 * H * d + head * d;
                for (whole i = 0; i < d; i++) to->k[(pair * d + i) * wide + n] = from[i];
                memcpy(to->v + (pair * length + n) * d, from + H * d, d * sizeof(float));
            }
}

/* memory of ids (B, S), of which `lengths` (B) count: their rows (R, D), one sentence after the other. And what the
 * decoder's layers keep of it. */
int encode(int threads, const Stack *s, whole sentences, whole length, const int64_t *ids, const int64_t *lengths,
           float *memory, whole layers, const Source *sources) {
    whole rows = 0, inner = s->heads * s->d;
    for (whole sentence = 0; sentence < sentences; sentence++) rows += lengths[sentence];
    Arena arena = {NULL, 0};
    size_t scores = attend_all_bytes(length, s->d), more = 0, wide = 0;
    buffers(&arena, threads, s, rows, scores, 0);
    for (whole i = 0; i < layers; i++) {
        size_t bytes = product_bytes(threads, &sources[i].project, rows);
        more = bytes > more ? bytes : more;
        wide = sources[i].project.out > (whole)wide ? (size_t)sources[i].project.out : wide;
    }
    arena = (Arena){scratch(arena.taken + more + (rows * wide + 2 * sentences + 2) * sizeof(float) + 192), 0};
    if (!arena.from) return 1;
    Buffers b = buffers(&arena, threads, s, rows, scores, 0);
    char *room = take(&arena, more);
    float *projected = take(&arena, rows * wide * sizeof(float));
    whole *starts = take(&arena, (sentences + 1) * sizeof(whole));
    for (whole sentence = starts[0] = 0; sentence < sentences; sentence++)
        starts[sentence + 1] = starts[sentence] + lengths[sentence];
#pragma omp parallel num_threads(threads)
    {
        whole begin, end;
        share(sentences, &begin, &end);
        for (whole sentence = begin; sentence < end; sentence++)
            for (whole n = 0; n < lengths[sentence]; n++)
                embed(s, ids[sentence * length + n], n, b.x + (starts[sentence] + n) * s->width);
#pragma omp barrier
        for (whole i = 0; i < s->layers; i++) {
            const Layer *layer = s->layer + i;
            team_product(&layer->self_in, rows, before(s, &layer->self_norm, rows, &b), NULL, b.wide, b.products);
            const Attention attention = {.heads = s->heads, .d = s->d, .entries = length, .q = b.wide,
                                         .new_k = b.wide + inner, .new_v = b.wide + 2 * inner, .stride = 3 * inner,
                                         .scale = s->scale, .y = b.context};
            team_attend_all(sentences, starts, &attention, b.scores);
            team_product(&layer->self_out, rows, b.context, b.x, b.x, b.products);
            after(s, &layer->self_norm, rows, &b);
            feed_forward(s, layer, rows, &b);
        }
        share(rows, &begin, &end);
        if (s->last.kind != NONE) norm_rows(&s->last, rows, s->width, b.x, memory);
        else memcpy(memory + begin * s->width, b.x + begin * s->width, (end - begin) * s->width * sizeof(float));
#pragma omp barrier
        for (whole i = 0; i < layers; i++) {
            team_product(&sources[i].project, rows, memory, NULL, projected, room);
            keep_source(sources + i, projected, sentences, length, starts);
#pragma omp barrier
        }
    }
    return 0;
}

/* A beam's past is that of the beam it continues, and its own newest entry. */
static void follow(const Step *p) {
    whole begin, end, K = p->beams;
    share(p->sentences * K, &begin, &end);
    for (whole row = begin; p->seen && row < end; row++) {
        int32_t *to = p->seen + row * p->limit;
        memcpy(to, p->before + (row / K * K + p->origin[row]) * p->limit, p->step * sizeof(int32_t));
        to[p->step] = 1 + (p->step - 1) * K + row % K; /* after the prompt, which all beams share */
    }
}

/* Not `step`, which is a function of the C library too. */
int decoder_step(int threads, const Stack *s, const Step *p) {
    whole rows = p->sentences * p->beams, inner = s->heads * s->d;
    whole entries = p->step ? 1 + p->step * p->beams : p->beams;
    size_t scores = attend_bytes(entries), others = attend_source_bytes(p->source);
    scores = others > scores ? others : scores;
    size_t head = p->logits ? product_bytes(threads, &p->head, rows)
                            : rank_bytes(threads, &p->head, rows, p->ranking.count);
    Arena arena = {NULL, 0};
    buffers(&arena, threads, s, rows, scores, head);
    arena = (Arena){scratch(arena.taken), 0};
    if (!arena.from) return 1;
    const Buffers b = buffers(&arena, threads, s, rows, scores, head);
#pragma omp parallel num_threads(threads)
    {
        whole begin, end;
        share(rows, &begin, &end);
        for (whole row = begin; row < end; row++) embed(s, p->ids[row], p->step, b.x + row * s->width);
        follow(p);
        for (whole i = 0; i < s->layers; i++) {
            const Layer *layer = s->layer + i;
            const Kept *kept = p->kept + i;
            team_product(&layer->self_in, rows, before(s, &layer->self_norm, rows, &b), NULL, b.wide, b.products);
            const Attention own = {.beams = p->beams, .heads = s->heads, .d = s->d, .entries = entries, .room = p->room,
                                   .q = b.wide, .new_k = b.wide + inner, .new_v = b.wide + 2 * inner,
                                   .stride = 3 * inner, .k = kept->k, .v = kept->v, .seen = p->seen,
                                   .limit = p->limit, .count = p->step + 1, .scale = s->scale, .y = b.context,
                                   .places = p->places};
            team_attend(p->sentences, &own, b.scores);
            team_product(&layer->self_out, rows, b.context, b.x, b.x, b.products);
            after(s, &layer->self_norm, rows, &b);
            team_product(&layer->cross_in, rows, before(s, &layer->cross_norm, rows, &b), NULL, b.wide, b.products);
            const Attention other = {.beams = p->beams, .heads = s->heads, .d = s->d, .entries = p->source,
                                     .q = b.wide, .stride = inner, .k = kept->source_k, .v = kept->source_v,
                                     .scale = s->scale, .y = b.context, .places = p->places};
            team_attend_source(p->sentences, p->lengths, &other, b.scores);
            team_product(&layer->cross_out, rows, b.context, b.x, b.x, b.products);
            after(s, &layer->cross_norm, rows, &b);
            feed_forward(s, layer, rows, &b);
        }
        if (s->last.kind != NONE) norm_rows(&s->last, rows, s->width, b.x, b.x);
        if (p->logits) team_product(&p->head, rows, b.x, NULL, p->logits, b.products);
        else team_rank(&p->head, rows, b.x, &p->ranking, b.products);
    }
    return 0;
}

/* The likeliest of a step's logits, but for what is forbidden, which makes the rest no more probable than it was. */
static int rank_allowed(int threads, const Step *p, const Beams *beams, const Bans *bans) {
    whole rows = p->sentences * p->beams, size = p->head.out;
    if (normalise(threads, rows, size, p->logits, p->ranking.normaliser)) return 1;
    if (forbid(threads, bans, beams, size, p->logits)) return 1;
    highest(threads, rows, size, p->ranking.count, p->logits, p->ranking.best, p->ranking.ids);
    return 0;
}

/* A beam search step by step: until at most `few` sentences go on, or `most` steps are made, or no more fit. How many
 * they were; -1 without memory. Where there are `bans`, there is room for logits. */
int beam_search(int threads, int choosing, const Stack *s, Step *p, const Beams *beams, const Bans *bans, whole few,
                whole most) {
    for (int made = 1;; made++) {
        whole going = 0;
        if (decoder_step(threads, s, p)) return -1;
        if (bans && rank_allowed(threads, p, beams, bans)) return -1;
        if (choose_beams(choosing, beams)) return -1;
        int32_t *seen = p->seen;
        p->seen = p->before;
        p->before = seen;
        p->step++;
        for (whole b = 0; b < beams->sentences; b++) going += beams->going[b];
        if (going <= few || made == most || *beams->step == beams->limit) return made;
    }
}
