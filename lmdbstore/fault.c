/*
 * What happens when LMDB meets a page that the disk cannot give or that does
 * not make sense. LMDB reads its file through a mapping, so such a page is a
 * SIGBUS, a SIGSEGV or a failed assertion inside C, and no caller can go on
 * from there: the process says what is wrong in one sentence and ends.
 */
#include "fault.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

/*
 * The functions of LMDB are linked into the program by package lmdb, whose
 * header is not on our include path. They are weak so that this package's own
 * objects also link without them, which cgo does to learn about symbols.
 */
typedef struct MDB_env MDB_env;
typedef void bole_assert_func(MDB_env *env, const char *msg);
extern int mdb_env_set_assert(MDB_env *env, bole_assert_func *func) __attribute__((weak));
extern int mdb_env_get_path(MDB_env *env, const char **path) __attribute__((weak));

static const char message[] = "bole: database page unreadable, run bole fsck\n";

static void end_process(void)
{
	/* Only calls that are allowed in a signal handler. */
	ssize_t n = write(STDERR_FILENO, message, sizeof message - 1);
	(void)n;
	_exit(1);
}

static void on_fault(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)info;
	(void)context;
	end_process();
}

static void on_assert(MDB_env *env, const char *msg)
{
	(void)env;
	(void)msg;
	end_process();
}

/*
 * A constructor runs before the Go runtime installs its handlers. The runtime
 * keeps what it finds and forwards to it exactly those synchronous signals
 * that were raised in C code; a fault in Go code stays a Go panic.
 */
__attribute__((constructor)) static void install_fault_handler(void)
{
	struct sigaction action;

	memset(&action, 0, sizeof action);
	action.sa_sigaction = on_fault;
	action.sa_flags = SA_SIGINFO | SA_ONSTACK;
	sigemptyset(&action.sa_mask);
	sigaction(SIGSEGV, &action, NULL);
	sigaction(SIGBUS, &action, NULL);
}

void bole_watch_env(void *env)
{
	if (mdb_env_set_assert)
		mdb_env_set_assert(env, on_assert);
}

/*
 * LMDB has no call that tells where its maps lie. MDB_env keeps the addresses
 * in the words behind the pointer to its path: first that of the data, then
 * that of the lock file (0.9.19, the version bundled with lmdb-go v1.8.0).
 * mdb_env_get_path gives that very pointer, so the words are found without
 * trusting an offset. The caller checks what lies there.
 */
void *bole_map_address(void *env, int which)
{
	const char *path = NULL;
	void **words = env;
	int i;

	if (!mdb_env_get_path || mdb_env_get_path(env, &path) != 0 || path == NULL)
		return NULL;
	for (i = 0; i < 16; i++)
		if (words[i] == (void *)path)
			return words[i + 1 + which];
	return NULL;
}
