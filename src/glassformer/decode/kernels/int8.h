/* Whole-number sums of a panel's 32 outputs for a few rows, by what this processor has for bytes. They are exact, so
 * the order of adding does not matter, and all ways give the same.
 *
 *     Number             what a row is rounded to, with OFFSET added
 *     Inputs             16 of a row's
 *     Weights, Sums      those of LANES outputs
 */
#pragma once
#include "common.h"

enum { TILE = 1024 }; /* bytes of 16 outputs and 64 inputs */
enum { UNITS = PANEL / LANES };

#if defined(__AVX512VNNI__) || defined(__AVXVNNI__)

/* Four products at once, of bytes without and with a sign. So 128 is added to the inputs, and what that is too much is
 * taken away at the end. */
enum { OFFSET = 128 };
typedef uint8_t Number;
typedef const Number *Inputs;
typedef bits Weights, Sums;

static inline Inputs inputs(const Number *x) { return x; }
static inline Weights weights(const char *w) { return *(const loose_bits *)w; }
static inline Sums more(Sums sums, Weights w, Inputs x, const int four) {
    int32_t same = *(const int32_t *)(x + 4 * four);
#ifdef __AVX512VNNI__
    return (bits)_mm512_dpbusd_epi32((__m512i)sums, _mm512_set1_epi32(same), (__m512i)w);
#else
    return (bits)_mm256_dpbusd_avx_epi32((__m256i)sums, _mm256_set1_epi32(same), (__m256i)w);
#endif
}
static inline Sums both(Sums a, Sums b) { return a + b; }
static inline bits total(Sums sums) { return sums; }

#elif defined(__AVX2__)

/* Two products at once, of bytes without and with a sign, are added up in 16 bits. So 128 is added to the weights, and
 * what that is too much is taken away at the end; and neighbours among the inputs may be 128 together, no more: what is
 * above is kept apart (see `tame`). */
#define TAMED
enum { OFFSET = 0 };
typedef int8_t Number;
typedef const Number *Inputs;
typedef __m256i Weights, Sums;

static inline Inputs inputs(const Number *x) { return x; }
static inline Weights weights(const char *w) {
    return _mm256_xor_si256(_mm256_loadu_si256((const __m256i *)w), _mm256_set1_epi8(-128));
}
static inline Sums more(Sums sums, Weights w, Inputs x, const int four) {
    int32_t same;
    memcpy(&same, x + 4 * four, 4);
    __m256i pairs = _mm256_maddubs_epi16(w, _mm256_set1_epi32(same));
    sums = _mm256_add_epi32(sums, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
    __asm__("" : "+x"(sums)); /* added now: a compiler that waits runs out of registers */
    return sums;
}
static inline Sums both(Sums a, Sums b) { return _mm256_add_epi32(a, b); }
static inline bits total(Sums sums) { return (bits)sums; }

#else

enum { OFFSET = 0 };
typedef int8_t Number;
typedef int8x16_t Inputs, Weights;
typedef int32x4_t Sums;

static inline Inputs inputs(const Number *x) { return vld1q_s8(x); }
static inline Weights weights(const char *w) { return vld1q_s8((const int8_t *)w); }
#define more(sums, w, x, four) vdotq_laneq_s32(sums, w, x, four)
static inline Sums both(Sums a, Sums b) { return vaddq_s32(a, b); }
static inline bits total(Sums sums) { return (bits)sums; }

#endif

/* `units` at a time, each in `split` sums: enough of them that none waits for the one before, few enough for the
 * registers. A row is `stride` after the other, and 64 of its inputs `gap` after the others. */
static inline __attribute__((always_inline)) void dots(
    const int rows, const int units, const int split, whole steps, const Number *x, whole stride, whole gap,
    const char *w, int32_t *sums) {
    for (int from = 0; from < UNITS; from += units) {
        Sums found[8][8][4]; /* of which only these are used, and become registers */
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++)
#pragma GCC unroll 8
            for (int u = 0; u < units; u++)
#pragma GCC unroll 4
                for (int i = 0; i < split; i++) found[r][u][i] = (Sums){0};
        for (whole step = 0; step < steps; step++)
            for (whole some = 0; some < 4; some++) {
                Inputs given[8];
#pragma GCC unroll 8
                for (int r = 0; r < rows; r++) given[r] = inputs(x + r * stride + step * gap + some * 16);
#define FOUR(four)                                                                                                     \
    _Pragma("GCC unroll 8") for (int u = 0; u < units; u++) {                                                          \
        const int left = (from + u) * LANES;                                                                           \
        const char *line = w + left / HALF * steps * TILE + left % HALF * 4;                                           \
        Weights own = weights(line + step * TILE + some * 256 + four * 64);                                            \
        _Pragma("GCC unroll 8") for (int r = 0; r < rows; r++)                                                         \
            found[r][u][four % split] = more(found[r][u][four % split], own, given[r], four);                          \
    }
                FOUR(0)
                FOUR(1)
                FOUR(2)
                FOUR(3)
#undef FOUR
            }
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++)
#pragma GCC unroll 8
            for (int u = 0; u < units; u++) {
                Sums all = found[r][u][0];
#pragma GCC unroll 4
                for (int i = 1; i < split; i++) all = both(all, found[r][u][i]);
                *(loose_bits *)(sums + r * PANEL + (from + u) * LANES) = total(all);
            }
    }
}

/* At most AT_ONCE rows. */
#if defined(__AVX512VNNI__) || defined(__ARM_FEATURE_DOTPROD)
enum { AT_ONCE = LANES == 16 ? 8 : 4 };
#elif defined(__AVXVNNI__)
enum { AT_ONCE = 6 };
#else
enum { AT_ONCE = 4 };
#endif

static void any_dots(
    whole rows, whole steps, const Number *x, whole stride, whole gap, const char *w, int32_t *sums) {
    switch (rows) { /* a number known when this is compiled: only then do the sums stay in registers */
#define CASE(count, units, split) case count: return dots(count, units, split, steps, x, stride, gap, w, sums)
#if defined(__AVX512VNNI__)
        CASE(1, 2, 4);
        CASE(2, 2, 2);
        CASE(3, 2, 2);
        CASE(4, 2, 1);
        CASE(5, 2, 1);
        CASE(6, 2, 1);
        CASE(7, 2, 1);
        CASE(8, 2, 1);
#elif defined(__AVXVNNI__)
        CASE(1, 4, 2);
        CASE(2, 4, 1);
        CASE(3, 4, 1);
        CASE(4, 2, 1);
        CASE(5, 2, 1);
        CASE(6, 2, 1);
#elif defined(__AVX2__)
        CASE(1, 4, 2);
        CASE(2, 4, 1);
        CASE(3, 2, 1);
        CASE(4, 2, 1);
#else
        CASE(1, 8, 1);
        CASE(2, 8, 1);
        CASE(3, 4, 1);
        CASE(4, 4, 1);
#endif
#undef CASE
    }
}

#ifdef TAMED
/* Of four inputs, what is above 128 together with a neighbour: so much of the one is multiplied apart. */
typedef struct {
    int32_t four; /* which */
    int8_t numbers[4];
} Rest;

enum { RESTS = 4 }; /* a row has a multiple of so many, of zeros at the end: most rows the same number of them */

/* 64 inputs, the first of which is the `four`th four of its row, made small enough; the number of the row's rests, of
 * which there were `count`; and the inputs' sum. */
static inline whole tame(Number *x, whole four, Rest *rests, whole count, int32_t *sum) {
    for (int half = 0; half < 64; half += 32) {
        __m256i pairs = _mm256_maddubs_epi16(_mm256_set1_epi8(1), _mm256_loadu_si256((const __m256i *)(x + half)));
        __m256i over = _mm256_cmpgt_epi16(_mm256_abs_epi16(pairs), _mm256_set1_epi16(128));
        uint32_t mask = _mm256_movemask_epi8(over); /* two bits a pair */
        bits part = (bits)_mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
        for (int i = 0; i < 8; i++) *sum += part[i];
        for (int i = 0; mask; i++, mask >>= 4) {
            if (!(mask & 15)) continue;
            Number *own = x + half + 4 * i;
            Rest *rest = rests + count++;
            *rest = (Rest){four + half / 4 + i, {0}};
            for (int n = 0; n < 4; n += 2) {
                int both = own[n] + own[n + 1], much = both > 128 ? both - 128 : both < -128 ? both + 128 : 0;
                own[n] -= much;
                rest->numbers[n] = much;
            }
        }
    }
    return count;
}

/* One row's rests, to its sums by a panel. */
static inline void add_rests(const Rest *rests, whole count, whole steps, const char *w, int32_t *sums) {
    Sums found[UNITS];
    for (int u = 0; u < UNITS; u++) found[u] = (Sums) * (const loose_bits *)(sums + u * LANES);
    for (whole n = 0; n < count; n++)
        for (int u = 0; u < UNITS; u++) {
            const char *line = w + u * LANES / HALF * steps * TILE + u * LANES % HALF * 4 + rests[n].four * 64;
            found[u] = more(found[u], weights(line), inputs((const Number *)rests[n].numbers), 0);
        }
    for (int u = 0; u < UNITS; u++) *(loose_bits *)(sums + u * LANES) = total(found[u]);
}
#endif
