// The check of the host's folder that is mounted as the session's workspace. The engine mounts it by its path, on which
// another session may have put a link since the worker checked it.
#ifndef WORKSPACE_H
#define WORKSPACE_H

// Returns 1 when SF_WORKSPACE (device:inode:path) is not set, or the folder with that device and inode is mounted at
// that path.
int workspace_is_expected(void);

#endif
