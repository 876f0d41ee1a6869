/* Memory that a thread keeps from call to call, and gives back when it ends. */
#include "common.h"
#include <pthread.h>

static pthread_key_t held;

__attribute__((constructor)) static void prepare(void) { pthread_key_create(&held, free); }

void *scratch(size_t bytes) {
    static _Thread_local size_t size;
    void *memory = pthread_getspecific(held);
    if (bytes > size) {
        free(memory);
        size = groups(bytes, 4096) * 4096;
        memory = aligned_alloc(4096, size);
        pthread_setspecific(held, memory);
    }
    return memory;
}
