// Checks the mounted workspace, because another session may have replaced its path since the worker's check.
#ifndef WORKSPACE_H
#define WORKSPACE_H

// Returns 1 if SF_WORKSPACE (device:inode:path) is not set, or if its path is a directory with this device and inode.
int workspace_is_expected(void);

#endif
