/* Memory that a thread keeps from call to call, and gives back when it ends. */
#include "common.h"
#include <pthread.h>

static pthread_key_t held;

__attribute__((constructor)) static void prepare(void) { pthread_key_create(&held, free); }

void *scratch(size_t bytes) {
    static _Thread_local size_t size;
    void *memory = pthread_getspecific(held);
    if (!memory || bytes > size) {
        free(memory);
        size = groups(bytes ? bytes : 1, 4096) * 4096;
        memory = aligned_alloc(4096, size);
        if (pthread_setspecific(held, memory)) { /* only a thread's first can fail, before there is anything to lose */
            free(memory);
            memory = NULL;
        }
    }
    return memory;
}
