// Checks the mounted workspace, because another session may have replaced its path since the worker's check.
#ifndef WORKSPACE_H
#define WORKSPACE_H

// Returns 1 when SF_WORKSPACE (device:inode:path) is not set, or that directory is mounted at that path.
int workspace_is_expected(void);

#endif
