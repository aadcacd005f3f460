#ifndef BOLE_LMDBSTORE_FAULT_H
#define BOLE_LMDBSTORE_FAULT_H

/* Both take the MDB_env behind a lmdb.Env. */
void bole_watch_env(void *env);
void *bole_map_address(void *env, int which);

#endif
