// The folder of the host that is mounted as the session's workspace. Whoever mounted it opened a path, and another
// session may have put a link on that path since the worker judged it.
#ifndef WORKSPACE_H
#define WORKSPACE_H

// 1 when the folder mounted at `path` is the one that SF_WORKSPACE names (device:inode), or when it names none.
int workspace_is_expected(const char *path);

#endif
