/* AMX: 16 rows by 16 outputs at once, in bfloat16 or int8. */
#pragma once
#include "int8.h"
#include <sys/syscall.h>
#include <unistd.h>

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
    const whole line = PANEL * sizeof(int32_t);
    _tile_stored(0, sums, line);
    _tile_stored(1, sums + HALF, line);
    if (two) {
        _tile_stored(2, sums + 16 * PANEL, line);
        _tile_stored(3, sums + 16 * PANEL + HALF, line);
    }
}

/* Up to 32 rows by a panel. */
static void tile_sums(int kind, whole rows, whole steps, const char *x, const char *w, int32_t *sums) {
    if (kind == INT8 && rows > 16) multiply(INT8, 1, steps, x, w, sums);
    else if (kind == INT8) multiply(INT8, 0, steps, x, w, sums);
    else if (rows > 16) multiply(BFLOAT16, 1, steps, x, w, sums);
    else multiply(BFLOAT16, 0, steps, x, w, sums);
}
