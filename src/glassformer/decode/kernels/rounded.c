/* y = relu(x W^T + bias) + add with x and W rounded to bfloat16 or int8: x (rows, in), y (rows, out), W in panels. */
#include "common.h"
#include <math.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { BFLOAT16 = 1, INT8 = 2 };
enum { TILE = 1024 };

/* Rows rounded, laid out as tiles: 16 rows, group of inputs, row, 64 bytes. */
typedef struct {
    whole steps;     /* groups of inputs */
    char *tiles;
    float *scale;    /* of each row: int8 is a multiple of it */
    int32_t *excess; /* of each row: 128 times the sum of its int8 */
} Rounded;

static void round_row(int kind, const Rounded *to, whole row, const float *x, whole in) {
    char *tile = to->tiles + row / 16 * to->steps * TILE + row % 16 * 64;
    __m512 high = _mm512_set1_ps(1e-30f);
    __m512i total = _mm512_setzero_si512();
    __mmask16 nan = 0;
    for (whole i = 0; kind == INT8 && i < in; i += 16) {
        __m512 part = _mm512_maskz_loadu_ps(first(in - i), x + i);
        high = _mm512_max_ps(high, _mm512_abs_ps(part));
        nan |= _mm512_cmp_ps_mask(part, part, _CMP_UNORD_Q);
    }
    float highest = nan ? NAN : _mm512_reduce_max_ps(high), factor = 127 / highest; /* so that NaN stays NaN */
    for (whole i = 0, width = kind == INT8 ? 64 : 32; i < to->steps * width; i += 16) {
        __m512 part = i < in ? _mm512_maskz_loadu_ps(first(in - i), x + i) : _mm512_setzero_ps();
        char *place = tile + i / width * TILE + i % width * (64 / width);
        if (kind == INT8) {
            __m512i whole_numbers = _mm512_cvtps_epi32(part * factor);
            total = _mm512_add_epi32(total, whole_numbers);
            _mm_store_si128((__m128i *)place, _mm512_cvtepi32_epi8(whole_numbers));
        }
#ifdef __AVX512BF16__
        else
            _mm256_store_si256((__m256i *)place, (__m256i)_mm512_cvtneps_pbh(part));
#endif
    }
    to->scale[row] = highest / 127;
    to->excess[row] = 128 * _mm512_reduce_add_epi32(total);
}

/* `tile_sums` multiplies up to 32 rows by a panel: for each 16 rows and each half of the panel 16 x 16 sums. */
#ifdef __AMX_INT8__

typedef struct {
    uint8_t palette, start, unused[14];
    uint16_t bytes[16];
    uint8_t rows[16];
} Shapes;

static const Shapes SHAPES = {1, 0, {0}, {64, 64, 64, 64, 64, 64, 64, 64}, {16, 16, 16, 16, 16, 16, 16, 16}};

int permitted(void) { return syscall(SYS_arch_prctl, 0x1023, 18) == 0; } /* Linux lends tiles on request only */
static void begin_tiles(void) { _tile_loadconfig(&SHAPES); }
static void end_tiles(void) { _tile_release(); }

static inline __attribute__((always_inline)) void multiply(
    const int kind, const int two, whole steps, const char *x, const char *w, int32_t *sums) {
    const char *below = x + steps * TILE, *right = w + steps * TILE;
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (whole i = 0; i < steps * TILE; i += TILE) {
        _tile_loadd(4, x + i, 64);
        _tile_loadd(6, w + i, 64);
        _tile_loadd(7, right + i, 64);
        if (two) _tile_loadd(5, below + i, 64);
        if (kind == INT8) {
            _tile_dpbssd(0, 4, 6);
            _tile_dpbssd(1, 4, 7);
        } else {
            _tile_dpbf16ps(0, 4, 6);
            _tile_dpbf16ps(1, 4, 7);
        }
        if (two && kind == INT8) {
            _tile_dpbssd(2, 5, 6);
            _tile_dpbssd(3, 5, 7);
        } else if (two) {
            _tile_dpbf16ps(2, 5, 6);
            _tile_dpbf16ps(3, 5, 7);
        }
    }
    _tile_stored(0, sums, 64);
    _tile_stored(1, sums + 256, 64);
    if (two) {
        _tile_stored(2, sums + 512, 64);
        _tile_stored(3, sums + 768, 64);
    }
}

static void tile_sums(int kind, const Rounded *x, whole top, whole rows, const char *w, int32_t *sums) {
    const char *given = x->tiles + top * x->steps * 64;
    if (kind == INT8 && rows > 16) multiply(INT8, 1, x->steps, given, w, sums);
    else if (kind == INT8) multiply(INT8, 0, x->steps, given, w, sums);
    else if (rows > 16) multiply(BFLOAT16, 1, x->steps, given, w, sums);
    else multiply(BFLOAT16, 0, x->steps, given, w, sums);
}

#else

int permitted(void) { return 1; }
static void begin_tiles(void) {}
static void end_tiles(void) {}

/* Without tiles, int8 only: four products at once, of bytes without and with a sign. So 128 is added to the weights,
 * and what that is too much is taken away at the end. */
static void tile_sums(int kind, const Rounded *x, whole top, whole rows, const char *w, int32_t *sums) {
    const __m512i sign = _mm512_set1_epi8((char)128);
    (void)kind;
    for (whole row = top; row < top + smaller(rows, 32); row += 8)
        for (whole half = 0; half < 2; half++) {
            const char *tile = x->tiles + row / 16 * x->steps * TILE + row % 16 * 64;
            const char *part = w + half * x->steps * TILE;
            __m512i found[8] = {0};
            for (whole step = 0; step < x->steps; step++, tile += TILE)
                for (whole four = 0; four < 64; four += 4, part += 64) {
                    __m512i weights = _mm512_xor_si512(_mm512_loadu_si512(part), sign);
#pragma GCC unroll 8
                    for (int r = 0; r < 8; r++) {
                        __m512i same = _mm512_set1_epi32(*(const int32_t *)(tile + four + r * 64));
                        found[r] = _mm512_dpbusd_epi32(found[r], weights, same);
                    }
                }
            int32_t *to = sums + (((row - top) / 16 * 2 + half) * 16 + row % 16) * 16;
            for (int r = 0; r < 8; r++)
                _mm512_store_si512(to + r * 16, _mm512_sub_epi32(found[r], _mm512_set1_epi32(x->excess[row + r])));
        }
}

#endif

/* Up to 32 rows of a panel, on their way out; `rows` and `columns` are the scales of int8. */
static void put_tiles(
    int kind, const Output *to, const int32_t *sums, whole top, whole count, whole left, const float *rows,
    const float *columns) {
    for (whole row = 0; row < count; row++)
        for (whole half = 0; half < 2 && left + half * HALF < to->out; half++) {
            const int32_t *found = sums + ((row / 16 * 2 + half) * 16 + row % 16) * 16;
            __m512 sum = _mm512_load_ps(found);
            if (kind == INT8) /* `columns` go on to the end of the last panel */
                sum = _mm512_cvtepi32_ps(_mm512_load_si512(found)) *
                      (rows[top + row] * _mm512_loadu_ps(columns + left + half * HALF));
            put(to, sum, top + row, left + half * HALF);
        }
}

int product_rounded(int kind, int threads, whole rows, whole in, whole out, const float *x, const char *w,
                    const float *scales, const float *bias, const float *add, int relu, float *y) {
    const Output to = {bias, add, relu, y, out};
    whole steps = groups(in, kind == INT8 ? 64 : 32), padded = groups(rows, 16) * 16;
    char *tiles = scratch(padded * (steps * 64 + 8));
    if (!tiles) return 1;
    float *scale = (float *)(tiles + padded * steps * 64);
    const Rounded rounded = {steps, tiles, scale, (int32_t *)(scale + padded)};
#pragma omp parallel num_threads(threads)
    {
        whole begin, end;
        int32_t sums[2 * 2 * 256] __attribute__((aligned(64)));
        share(rows, &begin, &end);
        for (whole row = begin; row < end; row++) round_row(kind, &rounded, row, x + row * in, in);
        begin_tiles();
#pragma omp barrier
        share(groups(out, PANEL), &begin, &end);
        for (whole panel = begin; panel < end; panel++)
            for (whole top = 0; top < rows; top += 32) {
                tile_sums(kind, &rounded, top, rows - top, w + panel * steps * 2 * TILE, sums);
                put_tiles(kind, &to, sums, top, smaller(32, rows - top), panel * PANEL, scale, scales);
            }
        end_tiles();
    }
    return 0;
}
