/* A preloaded library that records how to undo each write to the files of a directory until the file is synced.
 *
 * After a SIGKILL, which loses no write, undoing the recorded writes leaves a possible result of a power failure
 * (power.py).
 * UNSYNCED_DATA names the directory, UNSYNCED_NOTES the one for the notes: for each file, records of four numbers
 * (the offset, the length of the old content there, the length of the new one, the old size), and the old content.
 * Only pwrite, write, ftruncate, fsync and fdatasync are noted: SQLite uses no others for data. Names are assumed
 * to be durable, and shared memory does not survive.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILES_MAX = 64 };
struct note {
    uint64_t offset, old, new, size;
};
static struct {
    char name[NAME_MAX + 1];
    int notes;
} files[FILES_MAX];
static int count;
static const char *data, *folder;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static ssize_t (*real_pwrite)(int, const void *, size_t, off_t);
static ssize_t (*real_write)(int, const void *, size_t);
static int (*real_ftruncate)(int, off_t);
static int (*real_fsync)(int), (*real_fdatasync)(int);

__attribute__((constructor)) static void prepare(void) {
    data = getenv("UNSYNCED_DATA");
    folder = getenv("UNSYNCED_NOTES");
    real_pwrite = dlsym(RTLD_NEXT, "pwrite");
    real_write = dlsym(RTLD_NEXT, "write");
    real_ftruncate = dlsym(RTLD_NEXT, "ftruncate");
    real_fsync = dlsym(RTLD_NEXT, "fsync");
    real_fdatasync = dlsym(RTLD_NEXT, "fdatasync");
}

/* Return the file with the records of this file, or -1 if it is not in the directory. */
static int notes_on(int fd, struct stat *state) {
    char link[64], path[PATH_MAX], place[2 * PATH_MAX];
    if (!data || !folder || fstat(fd, state) || !S_ISREG(state->st_mode)) return -1;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return -1;
    path[length] = 0;
    size_t prefix = strlen(data);
    if (strncmp(path, data, prefix) || path[prefix] != '/') return -1;
    const char *name = strrchr(path, '/') + 1;
    for (int i = 0; i < count; i++)
        if (!strcmp(files[i].name, name)) return files[i].notes;
    snprintf(place, sizeof place, "%s/%s", folder, name);
    int notes = open(place, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (notes < 0 || count == FILES_MAX) abort();
    snprintf(files[count].name, sizeof files[count].name, "%s", name);
    files[count++].notes = notes;
    return notes;
}

static void note(int notes, int fd, uint64_t offset, uint64_t new, uint64_t changed, uint64_t size) {
    uint64_t old = offset < size ? (changed < size - offset ? changed : size - offset) : 0;
    char *record = malloc(sizeof(struct note) + old);
    if (!record) abort();
    *(struct note *)record = (struct note){offset, old, new, size};
    if (pread(fd, record + sizeof(struct note), old, (off_t)offset) != (ssize_t)old) {
        /* It is open for writing only. Others are not opened again: closing them would release SQLite's locks. */
        char link[64];
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        int reader = open(link, O_RDONLY | O_CLOEXEC);
        if (reader < 0 || pread(reader, record + sizeof(struct note), old, (off_t)offset) != (ssize_t)old) abort();
        close(reader);
    }
    if (real_write(notes, record, sizeof(struct note) + old) < 0) abort();
    free(record);
}

ssize_t pwrite(int fd, const void *bytes, size_t length, off_t offset) {
    struct stat state;
    pthread_mutex_lock(&lock);
    int notes = notes_on(fd, &state);
    if (notes >= 0) note(notes, fd, (uint64_t)offset, length, length, (uint64_t)state.st_size);
    ssize_t written = real_pwrite(fd, bytes, length, offset);
    pthread_mutex_unlock(&lock);
    return written;
}

ssize_t pwrite64(int fd, const void *bytes, size_t length, off_t offset) { return pwrite(fd, bytes, length, offset); }

ssize_t write(int fd, const void *bytes, size_t length) {
    struct stat state;
    if (!data || fstat(fd, &state) || !S_ISREG(state.st_mode)) return real_write(fd, bytes, length);
    pthread_mutex_lock(&lock);
    int notes = notes_on(fd, &state);
    off_t offset = lseek(fd, 0, SEEK_CUR);
    if (notes >= 0) note(notes, fd, (uint64_t)offset, length, length, (uint64_t)state.st_size);
    ssize_t written = real_write(fd, bytes, length);
    pthread_mutex_unlock(&lock);
    return written;
}

int ftruncate(int fd, off_t length) {
    struct stat state;
    pthread_mutex_lock(&lock);
    int notes = notes_on(fd, &state);
    if (notes >= 0) note(notes, fd, (uint64_t)length, 0, (uint64_t)state.st_size, (uint64_t)state.st_size);
    int result = real_ftruncate(fd, length);
    pthread_mutex_unlock(&lock);
    return result;
}

int ftruncate64(int fd, off_t length) { return ftruncate(fd, length); }

static int sync_with(int (*sync)(int), int fd) {
    struct stat state;
    pthread_mutex_lock(&lock);
    int notes = notes_on(fd, &state);
    int result = sync(fd);
    if (!result && notes >= 0 && real_ftruncate(notes, 0)) abort();
    pthread_mutex_unlock(&lock);
    return result;
}

int fsync(int fd) { return sync_with(real_fsync, fd); }

int fdatasync(int fd) { return sync_with(real_fdatasync, fd); }
