/* What constraints.py does to the logits of a step before the likeliest are chosen.
 *
 * Shapes: B sentences, K beams, R rows (B K), T tokens before each target, P placeholders, V vocabulary.
 */
#include "common.h"

/* The token at a place of what a row has said, the prompt first. */
static int64_t said(const Bans *s, const Beams *beams, whole row, whole place) {
    return place < s->before ? s->prompt[row / beams->beams * s->before + place]
                             : beams->written[row * beams->limit + place - s->before];
}

/* Nothing that would say `ngram` tokens in a row again. */
static void without_repeats(const Bans *s, const Beams *beams, whole row, float *logits) {
    whole n = s->ngram, length = s->before + *beams->step;
    for (whole first = 0; n && first + n <= length; first++) {
        whole same = 0;
        for (; same < n - 1; same++) {
            int64_t token = said(s, beams, row, first + same);
            if (token == NO_TOKEN || token != said(s, beams, row, length - n + 1 + same)) break;
        }
        int64_t token = said(s, beams, row, first + n - 1);
        if (same == n - 1 && token != NO_TOKEN && token != beams->end) logits[token] = -INFINITY;
    }
}

static int is_missing(const Bans *s, const Beams *beams, whole row, whole place) {
    const int64_t *written = beams->written + row * beams->limit;
    int missing = s->wanted[row / beams->beams * s->placeholders + place];
    for (whole i = 0; missing && i < *beams->step; i++) missing = written[i] != s->ids[place];
    return missing;
}

int forbid(int threads, const Bans *s, const Beams *beams, whole vocabulary, float *logits) {
    whole P = s->placeholders, left = beams->limit - *beams->step;
    float *room = scratch(threads * P * sizeof(float));
    if (!room) return 1;
#pragma omp parallel num_threads(threads)
    {
        whole begin, end;
        float *own = room + omp_get_thread_num() * P;
        share(beams->sentences * beams->beams, &begin, &end);
        for (whole row = begin; row < end; row++) {
            float *x = logits + row * vocabulary;
            whole waiting = 0;
            for (whole p = 0; p < P; p++) {
                int missing = is_missing(s, beams, row, p);
                own[p] = missing ? x[s->ids[p]] : -INFINITY;
                waiting += missing;
            }
            without_repeats(s, beams, row, x);
            if (waiting && waiting >= left - 1) /* room for no more than these and the end: they must come now */
                for (whole token = 0; token < vocabulary; token++) x[token] = -INFINITY;
            for (whole p = 0; p < P; p++) x[s->ids[p]] = own[p];
            if (waiting && beams->end != NO_TOKEN) x[beams->end] = -INFINITY;
        }
    }
    return 0;
}
