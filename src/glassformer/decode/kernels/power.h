/* e^x for x <= 0, to the last digits of float32; nothing at all below -87, where its numbers end. */
#include <math.h>
#include <stdint.h>

static inline float power(float x) {
    float in = x < -87 ? -87 : x, n = rintf(in * 1.442695041f);
    float f = in - n * 0.693359375f + n * 2.12194440e-4f; /* e^x = 2^n e^f, and f lies within +-0.35 */
    float p = 1 + f * (1 + f * (1 / 2.0f + f * (1 / 6.0f + f * (1 / 24.0f + f * (1 / 120.0f + f * (1 / 720.0f))))));
    union {
        int32_t bits;
        float number;
    } two = {.bits = ((int32_t)n + 127) << 23};
    return x < -87 ? 0 : p * two.number;
}
