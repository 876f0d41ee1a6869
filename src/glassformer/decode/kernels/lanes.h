/* Sixteen float32 numbers, in as many registers as this processor needs for them. */
#pragma once
#include <math.h>
#include <stdint.h>
#include <string.h>

#if defined(__AVX512F__)
#include <immintrin.h>
#define BYTES 64
#elif defined(__AVX2__)
#include <immintrin.h>
#define BYTES 32
#else
#include <arm_neon.h>
#define BYTES 16
#endif

typedef long whole;
typedef float native __attribute__((vector_size(BYTES)));
typedef float loose __attribute__((vector_size(BYTES), aligned(4), may_alias));
typedef int32_t bits __attribute__((vector_size(BYTES)));
typedef int32_t loose_bits __attribute__((vector_size(BYTES), aligned(4), may_alias));

enum { LANES = BYTES / 4, PARTS = 16 / LANES };

typedef struct {
    native part[PARTS];
} lanes;

#define EACH_PART _Pragma("GCC unroll 4") for (int p = 0; p < PARTS; p++)

/* a b + c, rounded once. The compiler joins no products and sums by itself, so that all levels round alike. */
static inline native fused(native a, native b, native c) {
#if defined(__AVX512F__)
    return (native)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__AVX2__)
    return (native)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#else
    return (native)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
#endif
}

static inline native alike(float x) { return x - (native){0}; }

static inline lanes all(float x) {
    lanes y;
    EACH_PART y.part[p] = alike(x);
    return y;
}

/* The first `count` of 16, zeros for the others. */
static inline lanes load(const float *from, whole count) {
    lanes x;
    float some[16] = {0};
    if (count < 16) from = memcpy(some, from, count * sizeof(float));
    EACH_PART x.part[p] = ((const loose *)from)[p];
    return x;
}

static inline void store(float *to, lanes x, whole count) {
    float some[16];
    EACH_PART((loose *)(count < 16 ? some : to))[p] = x.part[p];
    if (count < 16) memcpy(to, some, count * sizeof(float));
}

static inline lanes plus(lanes a, lanes b) {
    EACH_PART a.part[p] += b.part[p];
    return a;
}

static inline lanes times(lanes a, lanes b) {
    EACH_PART a.part[p] *= b.part[p];
    return a;
}

static inline lanes fused_lanes(lanes a, lanes b, lanes c) {
    EACH_PART c.part[p] = fused(a.part[p], b.part[p], c.part[p]);
    return c;
}

static inline native chosen(bits truth, native yes, native no) {
    return (native)((truth & (bits)yes) | (~truth & (bits)no));
}

static inline lanes not_below_zero(lanes x) { /* NaN stays NaN */
    EACH_PART x.part[p] = (native)((bits)x.part[p] & ~(x.part[p] < (native){0}));
    return x;
}

static inline native larger_native(native a, native b) { /* NaN in b has no say */
#if defined(__AVX512F__)
    return (native)_mm512_max_ps((__m512)b, (__m512)a);
#elif defined(__AVX2__)
    return (native)_mm256_max_ps((__m256)b, (__m256)a);
#else
    return (native)vmaxnmq_f32((float32x4_t)a, (float32x4_t)b);
#endif
}

static inline lanes larger(lanes a, lanes b) {
    EACH_PART a.part[p] = larger_native(a.part[p], b.part[p]);
    return a;
}

/* The sum of all: 8 and 8, then 4 and 4, 2 and 2, 1 and 1. */
static inline float sum(lanes x) {
#if defined(__AVX512F__)
    __m512 all = (__m512)x.part[0];
    __m256 eight = _mm512_castps512_ps256(all) + _mm512_extractf32x8_ps(all, 1);
#elif defined(__AVX2__)
    __m256 eight = (__m256)(x.part[0] + x.part[1]);
#endif
#if defined(__AVX2__)
    __m128 four = _mm256_castps256_ps128(eight) + _mm256_extractf128_ps(eight, 1);
    __m128 two = four + _mm_movehl_ps(four, four);
    return two[0] + two[1];
#else
    float32x4_t four = (float32x4_t)((x.part[0] + x.part[2]) + (x.part[1] + x.part[3]));
    float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
    return two[0] + two[1];
#endif
}

/* The largest of all, of which none is NaN. */
static inline float largest(lanes x) {
#if defined(__AVX512F__)
    return _mm512_reduce_max_ps((__m512)x.part[0]);
#elif defined(__AVX2__)
    __m256 eight = (__m256)larger_native(x.part[0], x.part[1]);
    __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return two[0] > two[1] ? two[0] : two[1];
#else
    native both = larger_native(larger_native(x.part[0], x.part[1]), larger_native(x.part[2], x.part[3]));
    return vmaxvq_f32((float32x4_t)both);
#endif
}

/* Which of a are greater than their counterparts of b: a bit for each. */
static inline uint32_t greater(lanes a, native b) {
#if defined(__AVX512F__)
    return _mm512_cmp_ps_mask((__m512)a.part[0], (__m512)b, _CMP_GT_OQ);
#elif defined(__AVX2__)
    return _mm256_movemask_ps((__m256)(a.part[0] > b)) | _mm256_movemask_ps((__m256)(a.part[1] > b)) << 8;
#else
    const uint16_t places[] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768};
    uint16x8_t low = vcombine_u16(vmovn_u32((uint32x4_t)(a.part[0] > b)), vmovn_u32((uint32x4_t)(a.part[1] > b)));
    uint16x8_t high = vcombine_u16(vmovn_u32((uint32x4_t)(a.part[2] > b)), vmovn_u32((uint32x4_t)(a.part[3] > b)));
    return vaddvq_u16(vorrq_u16(vandq_u16(low, vld1q_u16(places)), vandq_u16(high, vld1q_u16(places + 8))));
#endif
}

/* e^x for x <= 0, to the last digits of float32; nothing at all below -87, where its numbers end. */
static inline native power(native x) {
    const native magic = alike(12582912.0f); /* 1.5 2^23: what is added to it is rounded to a whole number */
    bits tiny = x < alike(-87);
    native in = chosen(tiny, alike(-87), x), moved = fused(in, alike(1.442695041f), magic), n = moved - magic;
    native f = fused(n, alike(2.12194440e-4f), fused(n, alike(-0.693359375f), in)); /* e^x = 2^n e^f, |f| < 0.35 */
    native y = alike(1 / 720.0f);
    y = fused(f, y, alike(1 / 120.0f));
    y = fused(f, y, alike(1 / 24.0f));
    y = fused(f, y, alike(1 / 6.0f));
    y = fused(f, y, alike(1 / 2.0f));
    y = fused(f, y, alike(1));
    y = fused(f, y, alike(1));
    y *= (native)(((bits)moved - (bits)magic + 127) << 23);
    return (native)((bits)y & ~tiny);
}

static inline lanes power_lanes(lanes x) {
    EACH_PART x.part[p] = power(x.part[p]);
    return x;
}

/* e^x for x <= 0 where nothing depends on the smallest: e^-87 for all below. */
static inline native some_power(native x) {
    const native magic = alike(12582912.0f), lowest = alike(-87);
#if defined(__AVX512F__)
    x = (native)_mm512_max_ps((__m512)lowest, (__m512)x); /* NaN stays NaN */
#elif defined(__AVX2__)
    x = (native)_mm256_max_ps((__m256)lowest, (__m256)x);
#else
    x = (native)vmaxq_f32((float32x4_t)lowest, (float32x4_t)x);
#endif
    native moved = fused(x, alike(1.442695041f), magic), n = moved - magic;
    native f = fused(x, alike(1.442695041f), -n); /* e^x = 2^n 2^f, |f| <= 0.5 */
    native y = alike(1.535336188e-4f);
    y = fused(f, y, alike(1.339887440e-3f));
    y = fused(f, y, alike(9.618437358e-3f));
    y = fused(f, y, alike(5.550332471e-2f));
    y = fused(f, y, alike(2.402264791e-1f));
    y = fused(f, y, alike(6.931472029e-1f));
    y = fused(f, y, alike(1));
    return (native)((bits)y + ((bits)moved << 23)); /* of `moved` that is n, in the place of an exponent */
}

static inline lanes some_power_lanes(lanes x) {
    EACH_PART x.part[p] = some_power(x.part[p]);
    return x;
}
